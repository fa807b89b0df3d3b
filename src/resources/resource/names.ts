/** Validates names in dynamic resource allocation: pools, device attributes, shares. */
import { byteLength } from '#lib/go/text.ts'
import { collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
import { cIdentifier } from '#meta/validation/names.ts'
import { validateDnsSubdomain } from '#meta/validation/rules.ts'
import { validateDriverName } from '#model/pod-spec/volumes/volume-sources.ts'

const MAX_POOL_BYTES = 253
const MAX_IDENTIFIER_BYTES = 32

/** DNS subdomains separated by slashes. */
export function validatePoolName(path: FieldPath, name: string): FieldError[] {
  if (name === '') return [path.required()]
  return collectErrors(
    byteLength(name) > MAX_POOL_BYTES && path.tooLong(MAX_POOL_BYTES),
    name.split('/').flatMap((part) => validateDnsSubdomain(path, part)),
  )
}

/** `domain/identifier`, or an identifier in the driver's domain. Upstream accepts more than one slash. */
export function validateAttributeName(path: FieldPath, name: string): FieldError[] {
  const [first = '', second, ...more] = name.split('/')
  if (more.length > 0) return []
  if (second === undefined) return validateIdentifier(path, first)
  return [
    ...(first === '' ? [path.invalid('', 'the domain must not be empty')] : validateDriverName(path, first)),
    ...(second === '' ? [path.invalid('', 'the name must not be empty')] : validateIdentifier(path, second)),
  ]
}

export function validateQualifiedAttribute(path: FieldPath, name: string): FieldError[] {
  const errors = validateAttributeName(path, name)
  if (name.includes('/')) return errors
  return [...errors, path.invalid(name, 'a fully qualified name must be a domain and a name separated by a slash')]
}

function validateIdentifier(path: FieldPath, name: string): FieldError[] {
  return collectErrors(
    byteLength(name) > MAX_IDENTIFIER_BYTES && path.tooLong(MAX_IDENTIFIER_BYTES),
    path.check(name, cIdentifier),
  )
}

const UUID = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}'
/** Forms that Go's UUID parser accepts as well: a prefix, braces, no dashes. */
const LOOSE_UUID = new RegExp(`^(?:urn:uuid:${UUID}|\\{${UUID}\\}|[0-9a-f]{32}|${UUID})$`, 'i')
const STRICT_UUID = new RegExp(`^${UUID}$`)

export function validateShareId(path: FieldPath, uid: string | undefined): FieldError[] {
  if (uid === undefined || STRICT_UUID.test(uid)) return []
  if (!LOOSE_UUID.test(uid)) return [path.invalid(uid, `error validating uid: ${uuidComplaint(uid)}`)]
  const form = 'RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters'
  return [path.invalid(uid, `uid must be in ${form}`)]
}

function uuidComplaint(uid: string): string {
  const bytes = byteLength(uid)
  return [32, 36, 38, 45].includes(bytes) ? 'invalid UUID format' : `invalid UUID length: ${bytes}`
}
