/** Builds LDAP filters (RFC 4515), and escapes text from users in them. */

/** Each ASCII character but letters, digits and a few others becomes `\xx`: no text can end the value or be a wildcard. */
export function escapeValue(text: string): string {
  return text.replaceAll(SPECIAL, (character) => `\\${character.charCodeAt(0).toString(16).padStart(2, '0')}`)
}

// eslint-disable-next-line no-control-regex
const SPECIAL = /[\u0000-\u007f](?<![A-Za-z0-9 =,.@_-])/g

/** The entries that match `filter` and have one of the values in the attribute. */
export function filterFor(filter: string, attribute: string, values: readonly string[]): string {
  const equal = values.map((value) => `(${attribute}=${escapeValue(value)})`)
  const one = equal.length === 1 ? equal[0] : `(|${equal.join('')})`
  return `(&${filter}${one})`
}
