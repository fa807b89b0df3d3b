/** NamespaceExists: refuses every write in a namespace that does not exist. */
import { Namespaces } from '#apis/core/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import { notFoundError } from '#meta/status-errors.ts'

import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

export const namespaceExists: AdmissionPlugin = defineAdmission({
  name: 'NamespaceExists',
  on: ['CREATE', 'UPDATE', 'DELETE'],

  validate(attributes) {
    const { namespace, kind } = attributes
    return namespace === '' || (kind.plural === 'namespaces' && kind.group === '') ? undefined : check(attributes)
  },
})

async function check({ objects, namespace }: Attributes): Promise<void> {
  if ((await objects.get(Namespaces, '', namespace)) !== undefined) return
  throw notFoundError({ group: '', resource: 'namespaces' }, namespace)
}
