/** The CEL library of named string formats: `format.dns1123Label().validate(s)`. */
import { parseRequestUri } from '#lib/go/url.ts'
import { dns1035Label, labelValue, nameIsLabel, nameIsSubdomain, qualifiedName } from '#meta/validation/names.ts'

import { sizeAt } from '../cost/costs.ts'
import { scaleSpan } from '../cost/span.ts'
import { defineLibrary, free, member, type Library, type Overload } from '../library.ts'
import { STRING, listOf, opaque, optionalOf } from '../type.ts'
import { Failure, OpaqueValue, Optional, type Result } from '../value.ts'
import { timestampOf } from '../values/json-text.ts'
import { listValue } from '../values/list.ts'
import { sizeOf, tenth } from '../values/size.ts'

const FORMAT = opaque('kubernetes.NamedFormat')
/** The largest pattern any format may have, for the estimate. */
const MAX_PATTERN = 128

class FormatValue extends OpaqueValue {
  readonly typeName = 'kubernetes.NamedFormat'
  readonly name: string
  /** The size of a pattern for it: what checking a text is priced by. */
  readonly patternSize: number
  /** Returns the reasons why a text does not have the format; none if it has. */
  readonly check: (text: string) => readonly string[]
  constructor(name: string, patternSize: number, check: (text: string) => readonly string[]) {
    super()
    this.name = name
    this.patternSize = patternSize
    this.check = check
  }
  equals(other: FormatValue): boolean {
    return this.name === other.name
  }
  override toString(): string {
    return this.name
  }
}

const either =
  (isSound: (text: string) => boolean, complaint: string) =>
  (text: string): string[] =>
    isSound(text) ? [] : [complaint]

function checkUri(text: string): string[] {
  const url = parseRequestUri(text)
  return typeof url === 'string' ? [url] : []
}

/** With something to follow: a dash at the end is as good as a letter. */
const masked = (text: string): string => text.replace(/-$/, 'a')

const isDate = (text: string): boolean => /^\d{4}-\d\d-\d\d$/.test(text) && !(timestampOf(text) instanceof Failure)

function isDateTime(text: string): boolean {
  const [day = '', time = ''] = text.toLowerCase().split('t')
  const match = /^([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})$/.exec(time)
  const [, hours = '', minutes = '', seconds = ''] = match ?? []
  return isDate(day) && match !== null && hours <= '23' && minutes <= '59' && seconds <= '59'
}

const UUID = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$/

const formats: Readonly<Record<string, FormatValue>> = {
  dns1123Label: new FormatValue('DNS1123Label', 30, (text) => nameIsLabel(text, false)),
  dns1123Subdomain: new FormatValue('DNS1123Subdomain', 60, (text) => nameIsSubdomain(text, false)),
  dns1035Label: new FormatValue('DNS1035Label', 30, dns1035Label),
  qualifiedName: new FormatValue('QualifiedName', 60, qualifiedName),
  dns1123LabelPrefix: new FormatValue('DNS1123LabelPrefix', 30, (text) => nameIsLabel(text, true)),
  dns1123SubdomainPrefix: new FormatValue('DNS1123SubdomainPrefix', 60, (text) => nameIsSubdomain(text, true)),
  dns1035LabelPrefix: new FormatValue('DNS1035LabelPrefix', 30, (text) => dns1035Label(masked(text))),
  labelValue: new FormatValue('LabelValue', 40, labelValue),
  uri: new FormatValue('URI', 1103, checkUri),
  uuid: new FormatValue(
    'uuid',
    72,
    either((text) => UUID.test(text), 'does not match the UUID format'),
  ),
  byte: new FormatValue(
    'byte',
    84,
    either((text) => BASE64.test(text), 'invalid base64'),
  ),
  date: new FormatValue('date', 72, either(isDate, 'invalid date')),
  datetime: new FormatValue('datetime', 72, either(isDateTime, 'invalid datetime')),
}

const constants: Record<string, Overload[]> = Object.fromEntries(
  Object.entries(formats).map(([name, value]) => [
    `format.${name}`,
    [free(`format.${name}`, [], FORMAT, { evaluate: () => value })],
  ]),
)

function validate(format: FormatValue, text: string): Result {
  const complaints = format.check(text)
  return complaints.length === 0 ? Optional.none : new Optional(listValue(complaints))
}

function named(name: string): Result {
  const found = Object.hasOwn(formats, name) ? formats[name] : undefined
  return found === undefined ? Optional.none : new Optional(found)
}

export const format: Library = defineLibrary('kubernetes.format', {
  validate: [
    member('format-validate', [FORMAT, STRING], optionalOf(listOf(STRING)), {
      evaluate: validate,
      cost: (value, text) =>
        value instanceof FormatValue ? tenth(sizeOf(text) + 1) * Math.ceil(value.patternSize * 0.25) : 1,
      estimate: (args) => ({ cost: scaleSpan(scaleSpan(sizeAt(args, 1), 0.1), MAX_PATTERN * 0.25) }),
    }),
  ],
  'format.named': [free('format-named', [STRING], optionalOf(FORMAT), { evaluate: named })],
  ...constants,
})
