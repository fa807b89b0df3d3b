/** The interface of key management plugins (KMS v2), and the form in which values rest that are sealed with their keys. */
import { defineMethod, type Method } from '#lib/grpc/method.ts'
import { defineMessage, type Input, type Message } from '#lib/protobuf/message.ts'
import { aggregateText } from '#meta/validation/field-error.ts'
import { validateFullyQualifiedDomainName } from '#meta/validation/rules.ts'

export type Annotations = Map<string, Buffer>

export interface KmsStatus {
  readonly version: string
  readonly healthz: string
  /** The key that new values should be sealed with. */
  readonly keyId: string
}

export interface Encrypted {
  readonly ciphertext: Buffer
  readonly keyId: string
  readonly annotations: Annotations
}

type Rpc<Q, R> = Method<Q, Input<Q>, R, Input<R>>

const ANNOTATIONS = { key: 'string', value: 'bytes' } as const

export const KMS_STATUS: Rpc<object, KmsStatus> = defineMethod(
  '/v2.KeyManagementService/Status',
  defineMessage({}),
  defineMessage({ version: [1, 'string'], healthz: [2, 'string'], keyId: [3, 'string'] }),
)
export const KMS_ENCRYPT: Rpc<{ readonly plaintext: Buffer; readonly uid: string }, Encrypted> = defineMethod(
  '/v2.KeyManagementService/Encrypt',
  defineMessage({ plaintext: [1, 'bytes'], uid: [2, 'string'] }),
  defineMessage({ ciphertext: [1, 'bytes'], keyId: [2, 'string'], annotations: [3, ANNOTATIONS] }),
)
export const KMS_DECRYPT: Rpc<Encrypted & { readonly uid: string }, { readonly plaintext: Buffer }> = defineMethod(
  '/v2.KeyManagementService/Decrypt',
  defineMessage({ ciphertext: [1, 'bytes'], uid: [2, 'string'], keyId: [3, 'string'], annotations: [4, ANNOTATIONS] }),
  defineMessage({ plaintext: [1, 'bytes'] }),
)

/**
 * What a key source is: `key`, a key of AES-GCM, as older servers wrote; `seed`, from which each value's own key is derived
 * with HKDF and 32 bytes that precede the value.
 */
export const SOURCE = { key: 0, seed: 1 } as const

/** A sealed value beside the encrypted source of the key it is sealed with. */
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

/** Throws upstream's text for what must neither be written nor read. */
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

/** What is wrong with the name of a key, if anything. */
export function keyIdComplaint(keyId: string): string | undefined {
  const bytes = Buffer.byteLength(keyId)
  if (bytes === 0) return 'keyID is empty'
  return bytes <= MAX_KEY_ID_BYTES
    ? undefined
    : `keyID is ${bytes} bytes, which exceeds the max size of ${MAX_KEY_ID_BYTES}`
}

function annotationsComplaint(annotations: Annotations): string | undefined {
  const errors = [...annotations.keys()].flatMap((name) => validateFullyQualifiedDomainName('annotations', name))
  let bytes = 0
  for (const [name, value] of annotations) bytes += Buffer.byteLength(name) + value.length
  const texts = errors.length === 0 ? [] : [aggregateText(errors)]
  if (bytes > MAX_ANNOTATION_BYTES) {
    texts.push(`total size of annotations is ${bytes}, which exceeds the max size of ${MAX_ANNOTATION_BYTES}`)
  }
  if (texts.length === 0) return undefined
  return texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`
}
