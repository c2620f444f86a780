"""From a channel of the file to the way out that it means."""

from hybridwatch.notify.channels import Channel, Channels, Email, Github, Gitlab, Slack, Webhook
from hybridwatch.notify.door import Door, UndeliveredError
from hybridwatch.notify.issues import IssueDoor


def door_of(channel: Channel, channels: Channels) -> Door:
    """Open the way out of a channel.

    The libraries that it takes are loaded here, and only those.

    Raises:
        UndeliveredError: A secret is missing in the environment, or a library is not installed.
    """
    try:
        return _opened(channel, channels)
    except ModuleNotFoundError as error:
        raise UndeliveredError(
            f"needs the Python module {error.name!r}, which is not installed here: "
            'pip install "hybridwatch[notify]"'
        ) from error


def _opened(channel: Channel, channels: Channels) -> Door:
    match channel:
        case Slack():
            from hybridwatch.notify.slack import SlackDoor

            return SlackDoor(channel)
        case Webhook():
            from hybridwatch.notify.webhook import WebhookDoor

            return WebhookDoor(channel, channels.source)
        case Email():
            from hybridwatch.notify.mail import MailDoor

            return MailDoor(channel)
        case Github():
            from hybridwatch.notify.github_tracker import GithubTracker

            return IssueDoor(GithubTracker(channel))
        case Gitlab():
            from hybridwatch.notify.gitlab import GitlabTracker

            return IssueDoor(GitlabTracker(channel))
