/**
 * NamespaceAutoProvision: creates the missing namespace of a new object. Off by default. Upstream's
 * plugin/pkg/admission/namespace/autoprovision, v1.36.
 */
import { Namespaces } from '#apis/core/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'

import { refuseEarly } from './kit/refusal.ts'
import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

export interface NamespaceCreator {
  /** Creates the namespace; an existing one is no error. Throws if the write fails. */
  ensure(name: string): Promise<void>
}

export function createNamespaceAutoProvision(namespaces: NamespaceCreator): AdmissionPlugin {
  return defineAdmission({
    name: 'NamespaceAutoProvision',
    on: ['CREATE'],

    mutate(attributes) {
      const { dryRun, namespace, objectKind } = attributes
      const isNamespace = objectKind.group === '' && objectKind.kind === 'Namespace'
      return dryRun || namespace === '' || isNamespace ? undefined : provision(namespaces, attributes)
    },
  })
}

async function provision(namespaces: NamespaceCreator, attributes: Attributes): Promise<void> {
  const { objects, namespace } = attributes
  if ((await objects.get(Namespaces, '', namespace)) !== undefined) return
  try {
    await namespaces.ensure(namespace)
  } catch (cause) {
    throw refuseEarly(attributes, (cause as Error).message)
  }
}
