/** Who may have to do with a signer of certificates: asked for the signer itself, then for all signers of its domain. */
import { type Access, type Authorizer, resourceAccess } from '../authorizers/authorizer.ts'
import type { User } from '../registry/resource.ts'

export interface SignerQuestion {
  readonly verb: 'approve' | 'sign' | 'attest'
  /** `example.com/client`. */
  readonly signerName: string
}

/** A question that could not be answered counts as a no. */
export async function mayUseSigner(
  ask: Authorizer['authorize'],
  user: User,
  { verb, signerName }: SignerQuestion,
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
