/** DefaultIngressClass: sets the default class of an ingress without one. */
import { type Ingress, IngressClasses } from '#apis/networking/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import { newestDefault } from '#model/newest-default.ts'

import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

const MARKS = ['ingressclass.kubernetes.io/is-default-class']
/** The annotation that predates the field; controllers still read it. */
const OLD_ANNOTATION = 'kubernetes.io/ingress.class'

export const defaultIngressClass: AdmissionPlugin = defineAdmission({
  name: 'DefaultIngressClass',
  on: ['CREATE'],
  resources: ['ingresses.networking.k8s.io'],

  mutate(attributes) {
    const { metadata, spec } = attributes.object as Ingress
    if (spec?.ingressClassName !== undefined || Object.hasOwn(metadata.annotations ?? {}, OLD_ANNOTATION)) return
    return nameDefault(attributes)
  },
})

async function nameDefault({ objects, object }: Attributes): Promise<void> {
  const name = newestDefault(await objects.list(IngressClasses, ''), MARKS)?.metadata.name
  if (name !== undefined) (object as Ingress).spec = { ...(object as Ingress).spec, ingressClassName: name }
}
