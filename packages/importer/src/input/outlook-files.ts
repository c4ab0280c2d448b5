// Mailboxes and mails of Outlook, which are not read.

/** What to import instead, by the names of files. */
const INSTEAD: readonly [RegExp, string][] = [
  [/\.msg$/i, 'It is a mail of Outlook: convert it by msgconvert, and import the .eml file.'],
  [/\.(pst|ost)$/i, 'It is a mailbox of Outlook: convert it by readpst -r -o FOLDER FILE, and import the folder.'],
  [/\.olm$/i, 'It is a mailbox of Outlook for Mac: drag its folders to the desktop, and import the .mbox files.'],
  [/\.dbx$/i, 'It is a mailbox of Outlook Express: import it into Thunderbird, and import the mailbox of Thunderbird.'],
]

/** Says how to import the mails of a file of Outlook. */
export function adviceOnOutlook(path: string): string | undefined {
  return INSTEAD.find(([name]) => name.test(path))?.[1]
}
