/**
 * Derives the names of Go struct fields from JSON names, for protobuf errors. About thirty API fields do not follow the
 * rule and get a readable name.
 */
import type { ProtobufMessage, StructSchema } from '../schema.ts'

const abbreviations = new Set(
  (
    'api aws ca cel cidr cidrs csi dns fc fs gce gid gmsa grpc http id ip ips iqn iscsi json nfs os pd pkix qos rbd se ' +
    'ssl tcp tls ttl tty uid url'
  ).split(' '),
)

/** `UID` for `uid`, `APIVersion` for `apiVersion`, `Replicas` for `replicas`. */
export function goFieldName(name: string): string {
  if (name === 'metadata') return 'ObjectMeta'
  const plain = name.replace(/^\$/, '').replaceAll(/-([a-z])/g, (_match, letter: string) => letter.toUpperCase())
  const first = /^[a-z]+/.exec(plain)?.[0] ?? ''
  if (abbreviations.has(first)) return first.toUpperCase() + plain.slice(first.length)
  return plain.charAt(0).toUpperCase() + plain.slice(1)
}

/**
 * The fields that Go has in an embedded struct, by JSON name, with the struct in front as in type errors:
 * `VolumeSource.emptyDir`. JSON flattens such structs; protobuf nests them, and has no TypeMeta.
 */
export function embeddedNames({ fields, protobuf }: StructSchema): Map<string, string> {
  const names = new Map<string, string>()
  if (protobuf === undefined) return names
  const plain = new Set<string>()
  collectNames(protobuf, '', (name, path) => {
    if (path === '') plain.add(name)
    else names.set(name, `${path}${name}`)
  })
  for (const name of ['kind', 'apiVersion']) {
    if (fields.has(name) && !plain.has(name) && !names.has(name)) names.set(name, `TypeMeta.${name}`)
  }
  return names
}

function collectNames(message: ProtobufMessage, path: string, found: (name: string, path: string) => void): void {
  for (const { field, inline } of message.fields) {
    if (field !== undefined) found(field.name, path)
    if (inline !== undefined)
      collectNames(inline, inline.goType === undefined ? path : `${path}${unqualified(inline.goType)}.`, found)
  }
}

/** `PodSpec` for `v1.PodSpec`. */
export function unqualified(goType: string): string {
  return goType.slice(goType.lastIndexOf('.') + 1)
}
