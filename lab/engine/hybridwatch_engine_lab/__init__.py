"""What is run inside an engine by hand, by a campaign, or as a mutant that is switched on."""
