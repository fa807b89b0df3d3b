/** Maps failed image pulls to upstream's reasons and messages. Pure. */
import { pullText } from '#cri/call-text.ts'

export interface PullFault {
  /** The reason of the waiting container. */
  readonly reason: string
  readonly message: string
}

/** Error prefixes of the runtime with their own reason, and the explanation. */
const KNOWN: readonly (readonly [reason: string, why: string])[] = [
  ['RegistryUnavailable', 'the registry is unavailable'],
  ['SignatureValidationFailed', 'the signature validation failed'],
]

/** `error` is the error of the runtime. */
export function pullFault(image: string, error: string): PullFault {
  const known = KNOWN.find(([reason]) => error.startsWith(reason))
  if (known === undefined) return { reason: 'ErrImagePull', message: error }
  const [reason, why] = known
  return { reason, message: `image pull failed for ${image} because ${why}${error.slice(reason.length)}` }
}

/** The distinct errors of all tried credentials, in Go's format for several errors. */
export function pullTexts(errors: readonly unknown[]): string {
  const texts = [...new Set(errors.map(pullText))]
  return texts.length === 1 ? texts.join('') : `[${texts.join(', ')}]`
}
