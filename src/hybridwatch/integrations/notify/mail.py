"""E-mail by SMTP: plain text.

A message that was taken and whose answer was lost is sent again with the same ``Message-ID``: at
least once; mail stores that look at it show it once.
"""

import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Final

from hybridwatch.integrations.notify.channels import Email
from hybridwatch.integrations.notify.client import Receipt, UndeliveredError, read_secret
from hybridwatch.integrations.notify.message import Message
from hybridwatch.reports.escape import one_line

_TIMEOUT_S: Final = 20.0
_SUBJECT: Final = 200


class MailDoor:
    """A mail server.

    Raises:
        UndeliveredError: The password is missing in the environment.
    """

    def __init__(self, channel: Email) -> None:
        self._channel = channel
        variable = channel.password_from
        self._password = "" if variable is None else read_secret(variable, r".+", "a password")

    def deliver(self, message: Message, place: str) -> Receipt:  # noqa: ARG002 (of no issue)
        """Send a message.

        Raises:
            UndeliveredError: No recipient was sent it.
        """
        mail = build_mail(message, self._channel)
        try:
            with self._connected() as server:
                refused = server.send_message(mail, self._channel.sender, self._channel.to)
        except (smtplib.SMTPException, OSError) as error:
            raise self._undelivered(error) from None
        # To send it again would reach the others twice.
        complaint = f"taken for some, refused for {', '.join(refused)}" if refused else ""
        return Receipt(complaint=complaint)

    @contextmanager
    def _connected(self) -> Iterator[smtplib.SMTP]:
        channel, context = self._channel, ssl.create_default_context()
        where = channel.host, channel.port
        if channel.security == "tls":
            server: smtplib.SMTP = smtplib.SMTP_SSL(*where, timeout=_TIMEOUT_S, context=context)
        else:
            server = smtplib.SMTP(*where, timeout=_TIMEOUT_S)
        try:
            if channel.security == "starttls":
                server.starttls(context=context)
            if channel.user:
                server.login(channel.user, self._password)
            yield server
        finally:
            with suppress(smtplib.SMTPException, OSError):
                server.quit()  # what was taken is taken, whatever becomes of the farewell
            server.close()

    def _undelivered(self, error: Exception) -> UndeliveredError:
        line = one_line(f"{type(error).__name__}: {error}")
        line = line.replace(self._password, "***") if self._password else line
        code = _read_code(error)
        refused = 500 <= code < 600
        alone = refused and not isinstance(error, smtplib.SMTPAuthenticationError)
        return UndeliveredError(line[:300], alone=alone, again=not refused)


def build_mail(message: Message, channel: Email) -> EmailMessage:
    """Write a message as a mail; those about one topic are one conversation."""
    mail = EmailMessage()
    domain = channel.sender.rpartition("@")[2]
    mail["Subject"] = f"hybridwatch: {message.headline}"[:_SUBJECT]
    mail["From"] = channel.sender
    mail["To"] = ", ".join(channel.to)
    mail["Date"] = format_datetime(message.made_at)
    mail["Message-ID"] = f"<{message.id}@{domain}>"
    mail["References"] = f"<{message.topic}.{message.channel}@{domain}>"
    mail["Auto-Submitted"] = "auto-generated"
    facts = [f"{name}: {value}" for name, value in message.facts()]
    link = [message.content.link] if message.content.link else []
    parts = ([message.headline], [message.detail], facts, message.lines(), link)
    mail.set_content("\n\n".join("\n".join(part) for part in parts if any(part)) + "\n")
    return mail


def _read_code(error: Exception) -> int:
    """Give the server's answer as a number; 0 where it gave none."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return min((code for code, _ in error.recipients.values()), default=0)
    return error.smtp_code if isinstance(error, smtplib.SMTPResponseException) else 0
