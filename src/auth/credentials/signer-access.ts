/** Authorizes an action on a certificate signer: by the signer's name, then by all signers of its domain. */
import { type Access, type Authorizer, resourceAccess } from '../authorizer.ts'
import type { User } from '../user.ts'

export interface SignerAccess {
  readonly verb: 'approve' | 'sign' | 'attest'
  /** `example.com/client`. */
  readonly signerName: string
}

/** An evaluation error counts as a denial. */
export async function mayUseSigner(
  ask: Authorizer['authorize'],
  user: User,
  { verb, signerName }: SignerAccess,
): Promise<boolean> {
  const [domain = ''] = signerName.split('/')
  return (
    (await isAllowed(ask, user, accessTo(verb, signerName))) ||
    (await isAllowed(ask, user, accessTo(verb, `${domain}/*`)))
  )
}

function accessTo(verb: string, name: string): Access {
  return resourceAccess({ verb, name, resource: 'signers', group: 'certificates.k8s.io', version: '*' })
}

async function isAllowed(ask: Authorizer['authorize'], user: User, access: Access): Promise<boolean> {
  const { allowed, error } = await ask(user, access)
  return allowed && error === undefined
}
