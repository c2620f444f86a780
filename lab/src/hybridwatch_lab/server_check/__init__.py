"""What ``hybridwatch check`` finds on live engines: nothing on a healthy one, and which faults.

``runner`` starts engines and asks, ``table`` keeps what came out and shows it.
"""
