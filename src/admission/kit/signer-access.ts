/** Checks whether the requesting user may approve, sign or attest for a certificate signer. */
import type { Attributes } from '#apiserver/registry/admission.ts'
import type { Authorizer } from '#auth/authorizer.ts'
import { mayUseSigner as mayUse, type SignerAccess } from '#auth/credentials/signer-access.ts'

export type Authorize = Authorizer['authorize']

/** An evaluation error counts as a denial. */
export function mayUseSigner(authorize: Authorize, { user }: Attributes, access: SignerAccess): Promise<boolean> {
  return mayUse(authorize, user, access)
}
