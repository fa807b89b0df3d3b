/**
 * NamespaceLifecycle: refuses creation in a namespace that is missing or terminating, and deletion of system
 * namespaces.
 */
import { Namespaces } from '#apis/core/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import { forbiddenError, notFoundError } from '#meta/status-errors.ts'

import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

const IMMORTAL: ReadonlySet<string> = new Set(['default', 'kube-system', 'kube-public', 'kube-node-lease'])

/** Access reviews may name a namespace that does not exist. */
const REVIEWS: ReadonlySet<string> = new Set(['localsubjectaccessreviews'])

export const namespaceLifecycle: AdmissionPlugin = defineAdmission({
  name: 'NamespaceLifecycle',
  on: ['CREATE', 'UPDATE', 'DELETE'],

  async mutate(attributes) {
    const { operation, kind, namespace, name, subresource } = attributes
    if (operation === 'DELETE' && kind.plural === 'namespaces' && kind.group === '' && IMMORTAL.has(name)) {
      throw forbiddenError({ group: '', resource: 'namespaces' }, name, 'this namespace may not be deleted')
    }
    if (operation !== 'CREATE' || namespace === '' || kind.plural === 'namespaces') return
    if (subresource !== '' || REVIEWS.has(kind.plural)) return
    await requireLiving(attributes)
  },
})

async function requireLiving({ objects, namespace, kind, object }: Attributes): Promise<void> {
  const found = await objects.get(Namespaces, '', namespace)
  if (found === undefined) throw notFoundError({ group: '', resource: 'namespaces' }, namespace)
  if (found.status.phase !== 'Terminating') return
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`
  const error = forbiddenError({ group: kind.group, resource: kind.plural }, object?.metadata.name ?? '', why)
  const cause = {
    reason: 'NamespaceTerminating' as const,
    message: `namespace ${namespace} is being terminated`,
    field: 'metadata.namespace',
  }
  error.status.details = { ...error.status.details, causes: [...(error.status.details?.causes ?? []), cause] }
  throw error
}
