/**
 * Field selectors: `metadata.name=web,status.phase!=Running`. A list of requirements that must all hold; which fields a
 * kind knows is the kind's business, given as a transform. Grammar and messages are upstream's (apimachinery fields).
 */
import { compareText, goQuote } from '#lib/go-text.ts'

export interface FieldRequirement {
  readonly field: string
  readonly operator: '=' | '!='
  readonly value: string
}

export interface FieldSelector {
  /** All must hold. */
  readonly requirements: readonly FieldRequirement[]
}

export const everyField: FieldSelector = { requirements: [] }

/** Gives a field another name or its value another form; nothing drops the requirement. Throws to refuse. */
export type FieldTransform = (
  field: string,
  value: string,
) => { readonly field: string; readonly value: string } | undefined

/** Reads a selector; empty text selects everything. Throws upstream's text, or what `transform` throws. */
export function parseFieldSelector(text: string, transform?: FieldTransform): FieldSelector {
  const terms = splitTerms(text)
  const requirements = terms
    .filter((term) => term !== '')
    .sort(compareText)
    .map((term) => parseTerm(text, term))
    // An empty name without a value says nothing.
    .filter(({ field, value }) => field !== '' || value !== '')
  if (requirements.length === 0) return everyField
  return transform === undefined ? { requirements } : transformFields({ requirements }, transform)
}

/** A selector for objects whose field is `value`. */
export function fieldEquals(field: string, value: string): FieldSelector {
  return { requirements: [{ field, operator: '=', value }] }
}

/** Both must hold. */
export function andFields(...selectors: readonly FieldSelector[]): FieldSelector {
  return { requirements: selectors.flatMap((selector) => selector.requirements) }
}

export function isEveryField(selector: FieldSelector): boolean {
  return selector.requirements.length === 0
}

/** `get` gives the value of a field as text, and the empty one for a field the object does not have. */
export function matchesFields(selector: FieldSelector, get: (field: string) => string): boolean {
  for (const { field, operator, value } of selector.requirements) {
    if ((get(field) === value) !== (operator === '=')) return false
  }
  return true
}

/** The canonical text, from which `parseFieldSelector` makes a selector that means the same. */
export function fieldSelectorText({ requirements }: FieldSelector): string {
  return requirements.map(({ field, operator, value }) => field + operator + escapeFieldValue(value)).join(',')
}

/** The one value `field` must have to be selected, when a requirement says so. */
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

/** What most kinds know: their name and namespace. */
export const metadataFields: FieldTransform = (field, value) => {
  if (field === 'metadata.name' || field === 'metadata.namespace') return { field, value }
  const known = '"metadata.name", "metadata.namespace"'
  throw new Error(`${goQuote(field)} is not a known field selector: only ${known}`)
}

/** What a kind with fields of its own knows. `unsupported` gives its text for the others. */
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

/** Commas separate terms unless a backslash stands before them. */
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
