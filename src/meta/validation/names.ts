/** Validates names, keys and values. Every check returns upstream's error texts, or none for a valid value. */
import { byteLength, isPrintable } from '#lib/go/text.ts'

/** The errors of a value; empty if it is valid. */
export type Check = (value: string) => string[]

export function maxLengthText(limit: number, unit: 'characters' | 'bytes' = 'characters'): string {
  return `must be no more than ${limit} ${unit}`
}

export function emptyText(): string {
  return 'must be non-empty'
}

export function rangeText(low: number, high: number): string {
  return `must be between ${low} and ${high}, inclusive`
}

/** `message (e.g. 'a',  or 'b', regex used for validation is '…')`: the odd commas are upstream's. */
export function regexText(message: string, pattern: string, ...examples: readonly string[]): string {
  const shown = examples.map((example) => `'${example}', `).join(' or ')
  return `${message} (${shown === '' ? '' : `e.g. ${shown}`}regex used for validation is '${pattern}')`
}

interface Format {
  readonly pattern: string
  readonly message: string
  readonly examples: readonly string[]
  readonly max?: number
  readonly unit?: 'characters' | 'bytes'
}

function defineFormat({ pattern, message, examples, max, unit }: Format): Check {
  const regex = new RegExp(`^(?:${pattern})$`)
  const complaint = regexText(message, pattern, ...examples)
  return (value) => {
    const complaints: string[] = []
    if (max !== undefined && byteLength(value) > max) complaints.push(maxLengthText(max, unit))
    if (!regex.test(value)) complaints.push(complaint)
    return complaints
  }
}

const LABEL_MAX = 63
const SUBDOMAIN_MAX = 253

const label = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const subdomain = `${label}(\\.${label})*`
const labelRegex = new RegExp(`^${label}$`)
const subdomainRegex = new RegExp(`^${subdomain}$`)

const subdomainFormat = {
  pattern: subdomain,
  message:
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
  examples: ['example.com'],
  max: SUBDOMAIN_MAX,
}

const labelComplaint = regexText(
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
  label,
  'my-name',
  '123-abc',
)

/** The name of most objects. */
export const dns1123Subdomain: Check = defineFormat(subdomainFormat)

const subdomainInBytes: Check = defineFormat({ ...subdomainFormat, unit: 'bytes' })

/** A namespace, or a part of a host name. */
export function dns1123Label(value: string): string[] {
  const complaints: string[] = []
  if (byteLength(value) > LABEL_MAX) complaints.push(maxLengthText(LABEL_MAX))
  if (!labelRegex.test(value)) {
    complaints.push(subdomainRegex.test(value) ? 'must not contain dots' : labelComplaint)
  }
  return complaints
}

/** The name of a Service: a label that begins with a letter. */
export const dns1035Label: Check = defineFormat({
  pattern: '[a-z]([-a-z0-9]*[a-z0-9])?',
  message:
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
  examples: ['my-name', 'abc-123'],
  max: LABEL_MAX,
})

/** A search domain of a pod's DNS, which may contain underscores. */
export const dns1123SubdomainWithUnderscore: Check = defineFormat({
  pattern: '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*',
  message:
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character",
  examples: ['example.com'],
  max: SUBDOMAIN_MAX,
})

/** A host of an Ingress rule such as `*.example.com`. */
export const wildcardDns1123Subdomain: Check = defineFormat({
  pattern: `\\*\\.${subdomain}`,
  message:
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
  examples: ['*.example.com'],
  max: SUBDOMAIN_MAX,
})

const qualified = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'
const qualifiedRegex = new RegExp(`^${qualified}$`)
const qualifiedComplaint = regexText(
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  qualified,
  'MyName',
  'my.name',
  '123-abc',
)

/** A label key: a name with an optional prefix, `example.com/MyName`. Also for taints, finalizers, resources. */
export function qualifiedName(value: string): string[] {
  return isPlainQualified(value) ? [] : qualifiedComplaints(value)
}

/** The prefix of the last name that was valid: many names of one object have the same. */
let lastPrefix = ''

/** Most names are valid, and seeing that costs less than finding out what is wrong. */
function isPlainQualified(value: string): boolean {
  const slash = value.indexOf('/')
  if (value.length - slash - 1 > LABEL_MAX || !qualifiedRegex.test(slash < 0 ? value : value.slice(slash + 1)))
    return false
  if (slash < 0) return true
  const prefix = value.slice(0, slash)
  if (prefix === lastPrefix) return prefix !== ''
  if (prefixComplaints(prefix).length > 0) return false
  lastPrefix = prefix
  return true
}

function qualifiedComplaints(value: string): string[] {
  const parts = value.split('/')
  if (parts.length > 2) {
    const optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
    return [`a valid label key ${qualifiedComplaint} ${optional}`]
  }
  const name = parts.at(-1) as string
  const complaints = parts.length === 2 ? prefixComplaints(parts[0] as string) : []
  if (name === '') complaints.push(`name part ${emptyText()}`)
  else if (byteLength(name) > LABEL_MAX) complaints.push(`name part ${maxLengthText(LABEL_MAX, 'bytes')}`)
  if (!qualifiedRegex.test(name)) complaints.push(`name part ${qualifiedComplaint}`)
  return complaints
}

function prefixComplaints(prefix: string): string[] {
  if (prefix === '') return [`prefix part ${emptyText()}`]
  return subdomainInBytes(prefix).map((complaint) => `prefix part ${complaint}`)
}

/** A label value; may be empty. */
export const labelValue: Check = defineFormat({
  pattern: `(${qualified})?`,
  message:
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  examples: ['MyValue', 'my_value', '12345'],
  max: LABEL_MAX,
  unit: 'bytes',
})

export const cIdentifier: Check = defineFormat({
  pattern: '[A-Za-z_][A-Za-z0-9_]*',
  message:
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'",
  examples: ['my_name', 'MY_NAME', 'MyName'],
})

const strictEnvVarName = defineFormat({
  pattern: '[-._a-zA-Z][-._a-zA-Z0-9]*',
  message:
    "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit",
  examples: ['my.env-name', 'MY_ENV.NAME', 'MyEnvName1'],
})

/** The name of an environment variable before the relaxation. */
export function envVarName(value: string): string[] {
  return [...strictEnvVarName(value), ...parentPath(value)]
}

/** The name of an environment variable: printable ASCII without `=`. */
export function relaxedEnvVarName(value: string): string[] {
  if (value === '') return [`environment variable name ${emptyText()}`]
  if (/^[ -<>-~]+$/.test(value)) return []
  return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]
}

const configKeyCharacters = defineFormat({
  pattern: '[-._a-zA-Z0-9]+',
  message: "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
  examples: ['key.name', 'KEY_NAME', 'key-name'],
  max: SUBDOMAIN_MAX,
})

/** A key of a ConfigMap or Secret: it may become a file name. */
export function configMapKey(value: string): string[] {
  return [...configKeyCharacters(value), ...parentPath(value)]
}

/** A name that must be a single segment of a URL path. */
export function pathSegmentName(value: string): string[] {
  if (value === '.' || value === '..') return [`may not be '${value}'`]
  return pathSegmentPrefix(value)
}

/** The same for a generateName, which gets a suffix. */
export function pathSegmentPrefix(value: string): string[] {
  return ['/', '%'].filter((char) => value.includes(char)).map((char) => `may not contain '${char}'`)
}

/** The name of a container or Service port. */
export function portName(value: string): string[] {
  const complaints: string[] = []
  if (byteLength(value) > 15) complaints.push(maxLengthText(15))
  if (!/^[-a-z0-9]+$/.test(value)) {
    complaints.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)')
  }
  if (!/[a-z]/.test(value)) complaints.push('must contain at least one letter (a-z)')
  if (value.includes('--')) complaints.push('must not contain consecutive hyphens')
  if (value.startsWith('-') || value.endsWith('-')) complaints.push('must not begin or end with a hyphen')
  return complaints
}

export function portNumber(value: number): string[] {
  return inRange(value, 1, 65535)
}

export function inRange(value: number, low: number, high: number): string[] {
  return value >= low && value <= high ? [] : [rangeText(low, high)]
}

/** A uid or gid of a process. */
export function userId(value: number): string[] {
  return inRange(value, 0, 2 ** 31 - 1)
}

export const percent: Check = defineFormat({
  pattern: '[0-9]+%',
  message: "a valid percent string must be a numeric string followed by an ending '%'",
  examples: ['1%', '93%'],
})

export const httpHeaderName: Check = defineFormat({
  pattern: '[-A-Za-z0-9]+',
  message: "a valid HTTP header must consist of alphanumeric characters or '-'",
  examples: ['X-Header-Name'],
})

/** The reason of a metav1.Condition. */
export const conditionReason: Check = defineFormat({
  pattern: '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?',
  message:
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'",
  examples: ['my_name', 'MY_NAME', 'MyName', 'ReasonA,ReasonB', 'ReasonA:ReasonB'],
})

/** A canonical integer: no plus, no leading zero, no `-0`. */
export function decimalInteger(value: string): string[] {
  if (value === '') return [emptyText()]
  return /^(?:0|-?[1-9][0-9]*)$/.test(value) ? [] : ['must be a valid decimal integer in canonical form']
}

/** An error for each unprintable character, with its byte offset. */
export function printableText(value: string): string[] {
  const complaints: string[] = []
  // The common case, which every write checks.
  if (/^[ -~]*$/.test(value)) return complaints
  let position = 0
  for (const char of value) {
    if (!isPrintable(char)) {
      const code = (char.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, '0')
      complaints.push(`invalid character U+${code} (at position ${position})`)
    }
    position += byteLength(char)
  }
  return complaints
}

/** The name check of a kind; `prefix` for a generateName, which gets a suffix. */
export type NameRule = (name: string, prefix: boolean) => string[]

export const nameIsSubdomain: NameRule = nameRule(dns1123Subdomain)
export const nameIsLabel: NameRule = nameRule(dns1123Label)
export const nameIsPathSegment: NameRule = (name, prefix) => (prefix ? pathSegmentPrefix(name) : pathSegmentName(name))

function nameRule(check: Check): NameRule {
  return (name, prefix) => check(prefix ? withoutTrailingDash(name) : name)
}

/**
 * A dash at the end of a generateName is valid, because a suffix follows. Upstream also drops the character before it
 * if it is one byte.
 */
function withoutTrailingDash(name: string): string {
  return name.replace(/(?:[\0-\x7f]-|(?<=[^])-)$/, 'a')
}

function parentPath(value: string): string[] {
  if (value === '.' || value === '..') return [`must not be '${value}'`]
  return value.startsWith('..') ? ["must not start with '..'"] : []
}
