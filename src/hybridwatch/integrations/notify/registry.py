"""From a channel of the file to the way out that it means."""

from hybridwatch.integrations.notify.channels import (
    Channel,
    Channels,
    Email,
    Github,
    Gitlab,
    Slack,
    Webhook,
)
from hybridwatch.integrations.notify.client import ChannelClient, UndeliveredError
from hybridwatch.integrations.notify.issues import IssueClient


def open_client(channel: Channel, channels: Channels) -> ChannelClient:
    """Open the client of a channel.

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


def _opened(channel: Channel, channels: Channels) -> ChannelClient:
    match channel:
        case Slack():
            from hybridwatch.integrations.notify.slack import SlackDoor

            return SlackDoor(channel)
        case Webhook():
            from hybridwatch.integrations.notify.webhook import WebhookDoor

            return WebhookDoor(channel, channels.source)
        case Email():
            from hybridwatch.integrations.notify.mail import MailDoor

            return MailDoor(channel)
        case Github():
            from hybridwatch.integrations.notify.github_tracker import GithubTracker

            return IssueClient(GithubTracker(channel))
        case Gitlab():
            from hybridwatch.integrations.notify.gitlab import GitlabTracker

            return IssueClient(GitlabTracker(channel))
