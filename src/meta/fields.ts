/**
 * Parses and matches field selectors, such as `metadata.name=web,status.phase!=Running`. The grammar and the error
 * texts are those of upstream's apimachinery fields.
 */
import { compareText, goQuote } from '#lib/go/text.ts'

export interface FieldRequirement {
  readonly field: string
  readonly operator: '=' | '!='
  readonly value: string
}

export interface FieldSelector {
  /** All must match. */
  readonly requirements: readonly FieldRequirement[]
}

export const everyField: FieldSelector = { requirements: [] }

/** Renames a field or converts its value; undefined drops the requirement. Throws to reject. */
export type FieldTransform = (
  field: string,
  value: string,
) => { readonly field: string; readonly value: string } | undefined

/** Parses a selector; empty text selects everything. Throws upstream's text, or errors of `transform`. */
export function parseFieldSelector(text: string, transform?: FieldTransform): FieldSelector {
  const terms = splitTerms(text)
  const requirements = terms
    .filter((term) => term !== '')
    .sort(compareText)
    .map((term) => parseTerm(text, term))
    // An empty name without a value is dropped.
    .filter(({ field, value }) => field !== '' || value !== '')
  if (requirements.length === 0) return everyField
  return transform === undefined ? { requirements } : transformFields({ requirements }, transform)
}

/** A selector for objects with this field value. */
export function fieldEquals(field: string, value: string): FieldSelector {
  return { requirements: [{ field, operator: '=', value }] }
}

/** Both must match. */
export function andFields(...selectors: readonly FieldSelector[]): FieldSelector {
  return { requirements: selectors.flatMap((selector) => selector.requirements) }
}

export function isEveryField(selector: FieldSelector): boolean {
  return selector.requirements.length === 0
}

/** `get` returns the value of a field as text, empty for a missing field. */
export function matchesFields(selector: FieldSelector, get: (field: string) => string): boolean {
  for (const { field, operator, value } of selector.requirements) {
    if ((get(field) === value) !== (operator === '=')) return false
  }
  return true
}

/** The canonical text, which `parseFieldSelector` parses to an equivalent selector. */
export function fieldSelectorText({ requirements }: FieldSelector): string {
  return requirements.map(({ field, operator, value }) => field + operator + escapeFieldValue(value)).join(',')
}

/** The only value that `field` may have, if a requirement fixes it. */
export function requiredField(selector: FieldSelector, field: string): string | undefined {
  return selector.requirements.find((one) => one.field === field && one.operator === '=')?.value
}

export function transformFields(selector: FieldSelector, transform: FieldTransform): FieldSelector {
  const requirements = selector.requirements.flatMap((requirement) => {
    const changed = transform(requirement.field, requirement.value)
    return changed === undefined ? [] : [{ ...requirement, field: changed.field, value: changed.value }]
  })
  return { requirements }
}

/** The common fields of most kinds: name and namespace. */
export const metadataFields: FieldTransform = (field, value) => {
  if (field === 'metadata.name' || field === 'metadata.namespace') return { field, value }
  const known = '"metadata.name", "metadata.namespace"'
  throw new Error(`${goQuote(field)} is not a known field selector: only ${known}`)
}

/** The fields of a kind with specific ones. `unsupported` provides the error text for others. */
export function knownFields(
  names: Iterable<string>,
  unsupported: (field: string) => string = (field) => `field label not supported: ${field}`,
): FieldTransform {
  const known = new Set(names)
  return (field, value) => {
    if (!known.has(field)) throw new Error(unsupported(field))
    return { field, value }
  }
}

export function escapeFieldValue(value: string): string {
  return value.replace(/[\\,=]/g, '\\$&')
}

/** Commas separate terms unless a backslash precedes them. */
function splitTerms(text: string): string[] {
  return text.match(/(?:[^\\,]+|\\[^]|\\$)+/gu) ?? []
}

function parseTerm(text: string, term: string): FieldRequirement {
  const match = /!=|==?/.exec(term)
  if (match === null) throw new Error(`invalid selector: '${text}'; can't understand '${term}'`)
  const value = unescape(term.slice(match.index + match[0].length))
  return { field: term.slice(0, match.index), operator: match[0] === '!=' ? '!=' : '=', value }
}

function unescape(text: string): string {
  return text.replace(/\\([^]?)|[,=]/gu, (found, escaped: string | undefined) => {
    // Upstream prints the character as a number.
    if (escaped === undefined) {
      throw new Error(`invalid field selector: unescaped character in value: ${found.codePointAt(0)}`)
    }
    if (!/^[\\,=]$/.test(escaped)) throw new Error(`invalid field selector: invalid escape sequence: ${found}`)
    return escaped
  })
}
