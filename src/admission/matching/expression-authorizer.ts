/** Implements the CEL variable `authorizer` for the expressions of one request. */
import type { Attributes } from '#apiserver/registry/admission.ts'
import { type Authorizer, pathAccess, resourceAccess, type Access } from '#auth/authorizer.ts'
import { serviceAccountGroups, serviceAccountUser } from '#auth/credentials/service-account-name.ts'
import type { User } from '#auth/user.ts'
import { AuthorizerValue, type Check, ResourceCheckValue, whenAnswered } from '#cel/authorizer.ts'
import type { AuthorizerValues } from '#model/expressions/activation.ts'

import { namespaceOf } from './matcher.ts'

export class ExpressionAuthorizer {
  readonly #values: AuthorizerValues

  /** Each access is checked once for all expressions. */
  constructor(ask: Authorizer['authorize'], attributes: Attributes) {
    const { user, addressed, subresource, name } = attributes
    const authorizer = new AuthorizerValue((check) => ask(subjectOf(check, user), accessOf(check)))
    const { group, resource } = addressed
    const namespace = namespaceOf(attributes)
    this.#values = {
      authorizer,
      requestResource: new ResourceCheckValue(authorizer, { group, resource, subresource, namespace, name }),
    }
  }

  /** Runs the evaluation, again each time that a needed answer arrives. */
  run<T>(work: (values: AuthorizerValues) => T): Promise<T> {
    return whenAnswered(() => work(this.#values))
  }
}

function subjectOf({ subject }: Check, user: User): User {
  if (subject.kind === 'requester') return user
  const groups = serviceAccountGroups(subject.namespace)
  return { name: serviceAccountUser(subject), uid: '', groups: [...groups, 'system:authenticated'], extra: {} }
}

function accessOf(check: Check): Access {
  if (check.kind === 'path') return pathAccess(check.verb, check.path)
  const { kind: _, subject: __, ...access } = check
  return resourceAccess({ ...access, version: '*' })
}
