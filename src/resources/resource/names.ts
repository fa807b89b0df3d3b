/** Names in dynamic resource allocation: pools, attributes of devices, shares. */
import { byteLength } from '#lib/go-text.ts'
import { type FieldError, invalid, required, tooLong } from '#meta/validation/field-error.ts'
import { cIdentifier } from '#meta/validation/names.ts'
import { complaining } from '#meta/validation/rules.ts'
import { validateDnsSubdomain } from '#model/pod-spec/checks.ts'
import { validateDriverName } from '#model/pod-spec/volume-sources.ts'

const MAX_POOL_BYTES = 253
const MAX_IDENTIFIER_BYTES = 32

/** Subdomains between slashes. */
export function validatePoolName(field: string, name: string): FieldError[] {
  if (name === '') return [required(field)]
  return [
    ...(byteLength(name) > MAX_POOL_BYTES ? [tooLong(field, MAX_POOL_BYTES)] : []),
    ...name.split('/').flatMap((part) => validateDnsSubdomain(field, part)),
  ]
}

/** `domain/identifier`, or an identifier of the driver's own domain. More than one slash upstream lets pass. */
export function validateAttributeName(field: string, name: string): FieldError[] {
  const [first = '', second, ...more] = name.split('/')
  if (more.length > 0) return []
  if (second === undefined) return validateIdentifier(field, first)
  return [
    ...(first === '' ? [invalid(field, '', 'the domain must not be empty')] : validateDriverName(field, first)),
    ...(second === '' ? [invalid(field, '', 'the name must not be empty')] : validateIdentifier(field, second)),
  ]
}

export function validateQualifiedAttribute(field: string, name: string): FieldError[] {
  const errors = validateAttributeName(field, name)
  if (name.includes('/')) return errors
  return [...errors, invalid(field, name, 'a fully qualified name must be a domain and a name separated by a slash')]
}

function validateIdentifier(field: string, name: string): FieldError[] {
  return [
    ...(byteLength(name) > MAX_IDENTIFIER_BYTES ? [tooLong(field, MAX_IDENTIFIER_BYTES)] : []),
    ...complaining(field, name, cIdentifier(name)),
  ]
}

const UUID = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}'
/** What Go's parser takes besides: a prefix, braces, no dashes. */
const LOOSE_UUID = new RegExp(`^(?:urn:uuid:${UUID}|\\{${UUID}\\}|[0-9a-f]{32}|${UUID})$`, 'i')
const STRICT_UUID = new RegExp(`^${UUID}$`)

export function validateShareId(field: string, uid: string | undefined): FieldError[] {
  if (uid === undefined || STRICT_UUID.test(uid)) return []
  if (!LOOSE_UUID.test(uid)) return [invalid(field, uid, `error validating uid: ${uuidComplaint(uid)}`)]
  const form = 'RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters'
  return [invalid(field, uid, `uid must be in ${form}`)]
}

function uuidComplaint(uid: string): string {
  const bytes = byteLength(uid)
  return [32, 36, 38, 45].includes(bytes) ? 'invalid UUID format' : `invalid UUID length: ${bytes}`
}
