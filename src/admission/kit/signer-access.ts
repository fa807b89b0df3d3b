import { type Access, type Authorizer, resourceAccess } from '#apiserver/authorizers/authorizer.ts'
/** Who may have to do with a signer: asked for the signer itself, then for all signers of its domain. */
import type { Attributes } from '#apiserver/registry/admission.ts'
import type { User } from '#apiserver/registry/resource.ts'

export type Ask = Authorizer['authorize']

export interface SignerQuestion {
  readonly verb: 'approve' | 'sign' | 'attest'
  /** `example.com/client`. */
  readonly signerName: string
}

/** A question that could not be answered counts as a no. */
export async function mayUseSigner(ask: Ask, { user }: Attributes, question: SignerQuestion): Promise<boolean> {
  const [domain = ''] = question.signerName.split('/')
  return (
    (await isAllowed(ask, user, accessTo(question.verb, question.signerName))) ||
    (await isAllowed(ask, user, accessTo(question.verb, `${domain}/*`)))
  )
}

function accessTo(verb: string, name: string): Access {
  return resourceAccess({ verb, name, resource: 'signers', group: 'certificates.k8s.io', version: '*' })
}

async function isAllowed(ask: Ask, user: User, access: Access): Promise<boolean> {
  const { allowed, error } = await ask(user, access)
  return allowed && error === undefined
}
