/**
 * OwnerReferencesPermissionEnforcement: users who change the owners of an object need permission to delete it. Users
 * who set `blockOwnerDeletion` need permission to set the owner's finalizers. Off by default. Upstream's
 * plugin/pkg/admission/gc, v1.36.
 */
import type { Attributes } from '#apiserver/registry/admission.ts'
import { type Access, type Authorizer, resourceAccess, type Verdict } from '#auth/authorizer.ts'
import { goQuote } from '#lib/go/text.ts'
import { apiVersionOf, type GroupVersionKind, type GroupVersionResource, parseApiVersion } from '#meta/kind.ts'
import { type OwnerReference, semanticEqual } from '#meta/object.ts'

import { refuse } from './kit/refusal.ts'
import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

export interface OwnerResource extends GroupVersionResource {
  readonly namespaced: boolean
}

export interface OwnerReferencesOptions {
  readonly authorize: Authorizer['authorize']
  /** The resources of a kind, of this server and aggregated ones; empty if there is none. */
  readonly resourcesFor: (kind: GroupVersionKind) => readonly OwnerResource[]
}

export function createOwnerReferencesPermissionEnforcement(options: OwnerReferencesOptions): AdmissionPlugin {
  return defineAdmission({
    name: 'OwnerReferencesPermissionEnforcement',
    on: ['CREATE', 'UPDATE'],

    validate(attributes) {
      const { kind, subresource, object, oldObject } = attributes
      const isPodStatus = kind.group === '' && kind.plural === 'pods' && subresource === 'status'
      const given = object?.metadata?.ownerReferences ?? []
      const old = oldObject?.metadata?.ownerReferences ?? []
      return isPodStatus || semanticEqual(given, old) ? undefined : check(options, attributes, { given, old })
    },
  })
}

interface Owners {
  readonly given: readonly OwnerReference[]
  readonly old: readonly OwnerReference[]
}

async function check(options: OwnerReferencesOptions, attributes: Attributes, owners: Owners): Promise<void> {
  const { authorize } = options
  const { user, operation } = attributes
  if (operation !== 'CREATE') {
    const verdict = await authorize(user, deletion(attributes))
    const why = "cannot set an ownerRef on a resource you can't delete"
    if (!verdict.allowed) throw refuse(attributes, `${why}: ${verdictText(verdict)}`)
  }
  const blocking = newlyBlocking(owners)
  if (blocking.length === 0 || (await authorize(user, FINALIZE_ANYTHING)).allowed) return
  for (const access of distinctAccesses(options, attributes, blocking)) {
    const verdict = await authorize(user, access)
    const why = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on"
    if (!verdict.allowed) throw refuse(attributes, `${why}: ${verdictText(verdict)}`)
  }
}

/** Reason and error as Go prints them: an absent error is `<nil>`. */
function verdictText({ reason, error }: Verdict): string {
  return `${reason}, ${error ?? '<nil>'}`
}

function deletion({ addressed, subresource, namespace, name }: Attributes): Access {
  return resourceAccess({ ...addressed, verb: 'delete', subresource, namespace, name })
}

const FINALIZE_ANYTHING: Access = resourceAccess({
  verb: 'update',
  group: '*',
  version: '*',
  resource: '*',
  subresource: 'finalizers',
  name: '*',
})

/** New references that block the deletion of their owner. */
function newlyBlocking({ given, old }: Owners): readonly OwnerReference[] {
  const before = new Map(old.map((reference) => [reference.uid, reference.blockOwnerDeletion === true]))
  return given.filter(({ uid, blockOwnerDeletion }) => blockOwnerDeletion === true && before.get(uid) !== true)
}

/** The required accesses, each once: an object may repeat its owners thousands of times. */
function distinctAccesses(
  { resourcesFor }: OwnerReferencesOptions,
  attributes: Attributes,
  references: readonly OwnerReference[],
): Iterable<Access> {
  const accesses = new Map<string, Access>()
  for (const { apiVersion, kind, name } of references) {
    const gvk = { ...parseApiVersion(apiVersion), kind }
    const resources = resourcesFor(gvk)
    if (resources.length === 0) {
      const why = `cannot find RESTMapping for APIVersion ${apiVersion} Kind ${kind}`
      const missing = `no matches for kind ${goQuote(kind)} in version ${goQuote(apiVersionOf(gvk))}`
      throw refuse(attributes, `cannot set blockOwnerDeletion in this case because ${why}: ${missing}`)
    }
    for (const { group, version, resource, namespaced } of resources) {
      const namespace = namespaced ? attributes.namespace : ''
      const access = { group, version, resource, namespace, name }
      accesses.set(Object.values(access).join('/'), finalization(access))
    }
  }
  return accesses.values()
}

function finalization(target: Pick<Access, 'group' | 'version' | 'resource' | 'namespace' | 'name'>): Access {
  return resourceAccess({ ...target, verb: 'update', subresource: 'finalizers' })
}
