/** Removes keys and passwords from text before users see it. Pure. */

const PEM = /-----BEGIN [^-]*PRIVATE KEY-----[\s\S]*?(?:-----END [^-]*PRIVATE KEY-----|$)/g
/** Shorter values occur in ordinary words. */
const MIN_LENGTH = 6
const HIDDEN = '[hidden]'

/** `secrets`: values whose texts, at any depth, must not appear. */
export function createRedaction(secrets: readonly unknown[]): (text: string) => string {
  const texts = [...new Set(secrets.flatMap(textsIn))].filter((text) => text.length >= MIN_LENGTH)
  // The longest first: one may contain another.
  texts.sort((one, other) => other.length - one.length)
  return (text) => texts.reduce((left, secret) => left.replaceAll(secret, HIDDEN), text.replaceAll(PEM, HIDDEN))
}

/** The lines of a text, too: programs print single ones. */
function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value, ...value.split('\n').map((line) => line.trim())]
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).flatMap(textsIn)
}
