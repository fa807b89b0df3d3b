/** Who may have to do with a signer, asked about whoever makes the request that is to be admitted. */
import type { Authorizer } from '#apiserver/authorizers/authorizer.ts'
import { mayUseSigner as mayUse, type SignerQuestion } from '#apiserver/credentials/signer-access.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'

export type Ask = Authorizer['authorize']

/** A question that could not be answered counts as a no. */
export function mayUseSigner(ask: Ask, { user }: Attributes, question: SignerQuestion): Promise<boolean> {
  return mayUse(ask, user, question)
}
