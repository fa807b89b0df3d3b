/** Encodes the storage format of values that are encrypted with KMS v2. */
import { defineMessage, type Message } from '#lib/protobuf/message.ts'
import { aggregateText } from '#meta/validation/field-error.ts'
import { fieldPath } from '#meta/validation/field-path.ts'
import { validateFullyQualifiedDomainName } from '#meta/validation/rules.ts'

type Annotations = Map<string, Buffer>

const ANNOTATIONS = { key: 'string', value: 'bytes' } as const

/**
 * The types of key sources: `key`, an AES-GCM key, as older servers wrote; `seed`, from which each value's key is
 * derived with HKDF and 32 bytes that precede the value.
 */
export const SOURCE = { key: 0, seed: 1 } as const

/** A sealed value with the encrypted source of its key. */
export interface EncryptedObject {
  readonly encryptedData: Buffer
  readonly keyId: string
  readonly encryptedSource: Buffer
  readonly annotations: Annotations
  /** One of `SOURCE`. */
  readonly sourceType: number
}

export const encryptedObject: Message<EncryptedObject> = defineMessage({
  encryptedData: [1, 'bytes'],
  keyId: [2, 'string'],
  encryptedSource: [3, 'bytes'],
  annotations: [4, ANNOTATIONS],
  sourceType: [5, 'enum'],
})

const MAX_KEY_ID_BYTES = 1024
const MAX_SOURCE_BYTES = 1024
const MAX_ANNOTATION_BYTES = 32 * 1024

/** Throws upstream's text for an invalid value. */
export function checkEncryptedObject(object: EncryptedObject): void {
  const { encryptedData, keyId, encryptedSource, annotations, sourceType } = object
  if (sourceType !== SOURCE.key && sourceType !== SOURCE.seed) {
    throw new Error(`unknown encryptedDEKSourceType: ${sourceType}`)
  }
  if (encryptedData.length === 0) throw new Error('encrypted data is empty')
  const complaints: readonly (readonly [string, string | undefined])[] = [
    ['encrypted DEK source', sourceComplaint(encryptedSource.length)],
    ['key id', keyIdComplaint(keyId)],
    ['annotations', annotationsComplaint(annotations)],
  ]
  for (const [what, complaint] of complaints) {
    if (complaint !== undefined) throw new Error(`failed to validate ${what}: ${complaint}`)
  }
}

function sourceComplaint(bytes: number): string | undefined {
  if (bytes === 0) return 'encrypted DEK source is empty'
  if (bytes <= MAX_SOURCE_BYTES) return undefined
  return `encrypted DEK source is ${bytes} bytes, which exceeds the max size of ${MAX_SOURCE_BYTES}`
}

/** The error of a key ID, if any. */
export function keyIdComplaint(keyId: string): string | undefined {
  const bytes = Buffer.byteLength(keyId)
  if (bytes === 0) return 'keyID is empty'
  return bytes <= MAX_KEY_ID_BYTES
    ? undefined
    : `keyID is ${bytes} bytes, which exceeds the max size of ${MAX_KEY_ID_BYTES}`
}

function annotationsComplaint(annotations: Annotations): string | undefined {
  const errors = [...annotations.keys()].flatMap((name) =>
    validateFullyQualifiedDomainName(fieldPath('annotations'), name),
  )
  let bytes = 0
  for (const [name, value] of annotations) bytes += Buffer.byteLength(name) + value.length
  const texts = errors.length === 0 ? [] : [aggregateText(errors)]
  if (bytes > MAX_ANNOTATION_BYTES) {
    texts.push(`total size of annotations is ${bytes}, which exceeds the max size of ${MAX_ANNOTATION_BYTES}`)
  }
  if (texts.length === 0) return undefined
  return texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`
}
