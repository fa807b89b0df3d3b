/** What classes of storage share: the driver they are for, and parameters that only it understands. */
import { byteLength } from '#lib/go-text.ts'
import { type FieldError, invalid, required, tooLong } from '#meta/validation/field-error.ts'
import { validateQualifiedName } from '#model/pod-spec/checks.ts'

const MAX_PARAMETERS = 512
/** Keys and values together. */
export const MAX_PARAMETERS_BYTES: number = 256 * 1024

/** Case is let pass for the sake of old in-tree names. */
export function validateDriver(field: string, driver: string): FieldError[] {
  return driver === '' ? [required(field)] : validateQualifiedName(field, driver.toLowerCase())
}

export function validateParameters(
  field: string,
  parameters: Readonly<Record<string, string>> = {},
  mayBeEmpty: boolean,
): FieldError[] {
  const names = Object.keys(parameters)
  if (names.length > MAX_PARAMETERS) return [tooLong(field, MAX_PARAMETERS)]
  return [
    ...(Object.hasOwn(parameters, '') ? [invalid(field, '', 'field can not be empty.')] : []),
    ...(sizeBytesOf(parameters) > MAX_PARAMETERS_BYTES ? [tooLong(field, MAX_PARAMETERS_BYTES)] : []),
    ...(!mayBeEmpty && names.length === 0 ? [required(field, 'must contain at least one key/value pair')] : []),
  ]
}

export function sizeBytesOf(map: Readonly<Record<string, string>> = {}): number {
  return Object.entries(map).reduce((sum, [name, value]) => sum + byteLength(name) + byteLength(value), 0)
}
