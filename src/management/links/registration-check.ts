/** Finds the valid registration token of an agent's request, and decrements its remaining uses. */
import { unauthorizedError } from '#meta/status-errors.ts'

import { type RegistrationToken, type RegistrationTokenSpec, RegistrationTokens } from '../kinds/registration-token.ts'
import type { ManagementObjects } from '../objects.ts'
import { hashOf, isSame } from './agent-request.ts'

type Purpose = NonNullable<RegistrationTokenSpec['purpose']>

/** Undefined: the text is no token for this purpose, or the token is expired or used up. */
export function findToken(objects: ManagementObjects, text: string, purpose: Purpose): RegistrationToken | undefined {
  const hash = hashOf(text)
  const found = objects.list(RegistrationTokens).find(({ spec }) => isSame(spec.hash, hash))
  if (found === undefined || (found.spec.purpose ?? 'cluster') !== purpose) return undefined
  const isUsable = found.spec.usesLeft > 0 && Date.parse(found.spec.expiresAt) > objects.clock.now()
  return isUsable ? found : undefined
}

/** Throws StatusError for two requests with one token: the second one finds no use left. */
export async function useOnce(objects: ManagementObjects, { metadata }: RegistrationToken): Promise<void> {
  await objects.change(RegistrationTokens, metadata.name ?? '', (now) => {
    if (now.spec.usesLeft <= 0) throw unauthorizedError('Unauthorized')
    return { ...now, spec: { ...now.spec, usesLeft: now.spec.usesLeft - 1 } }
  })
}
