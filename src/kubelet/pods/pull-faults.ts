/** Why an image could not be pulled, as users are told. Pure. */
import { pullText } from '../cri/call-text.ts'

export interface PullFault {
  /** Of the container that waits for it. */
  readonly reason: string
  readonly message: string
}

/** What runtimes begin with when they know more, and what is said of it. */
const KNOWN: readonly (readonly [reason: string, why: string])[] = [
  ['RegistryUnavailable', 'the registry is unavailable'],
  ['SignatureValidationFailed', 'the signature validation failed'],
]

/** `error`: as the runtime told it. */
export function pullFault(image: string, error: string): PullFault {
  const known = KNOWN.find(([reason]) => error.startsWith(reason))
  if (known === undefined) return { reason: 'ErrImagePull', message: error }
  const [reason, why] = known
  return { reason, message: `image pull failed for ${image} because ${why}${error.slice(reason.length)}` }
}

/** What came of each of those one tried to be, as Go prints several errors: each once. */
export function pullTexts(errors: readonly unknown[]): string {
  const texts = [...new Set(errors.map(pullText))]
  return texts.length === 1 ? texts.join('') : `[${texts.join(', ')}]`
}
