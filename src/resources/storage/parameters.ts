/** Validates the driver and the driver-specific parameters of storage classes. */
import { byteLength } from '#lib/go/text.ts'
import { collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
import { validateQualifiedName } from '#meta/validation/rules.ts'

const MAX_PARAMETERS = 512
/** The total size of keys and values. */
export const MAX_PARAMETERS_BYTES: number = 256 * 1024

/** Upper case is accepted for old in-tree names. */
export function validateDriver(path: FieldPath, driver: string): FieldError[] {
  return driver === '' ? [path.required()] : validateQualifiedName(path, driver.toLowerCase())
}

export function validateParameters(
  path: FieldPath,
  parameters: Readonly<Record<string, string>> = {},
  mayBeEmpty: boolean,
): FieldError[] {
  const names = Object.keys(parameters)
  if (names.length > MAX_PARAMETERS) return [path.tooLong(MAX_PARAMETERS)]
  return collectErrors(
    Object.hasOwn(parameters, '') && path.invalid('', 'field can not be empty.'),
    sizeBytesOf(parameters) > MAX_PARAMETERS_BYTES && path.tooLong(MAX_PARAMETERS_BYTES),
    !mayBeEmpty && names.length === 0 && path.required('must contain at least one key/value pair'),
  )
}

export function sizeBytesOf(map: Readonly<Record<string, string>> = {}): number {
  return Object.entries(map).reduce((sum, [name, value]) => sum + byteLength(name) + byteLength(value), 0)
}
