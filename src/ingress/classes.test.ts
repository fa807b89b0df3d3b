import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Ingress, IngressClass } from '#apis/networking/v1.ts'

import { isOurs } from './classes.ts'

const RULE = { controller: 'k8s.io/ingress-nginx', className: 'nginx', takesUnclassed: false }
const CLASSES: Readonly<Record<string, string>> = { nginx: 'k8s.io/ingress-nginx', other: 'example.com/other' }
const classOf = (name: string): IngressClass | undefined => {
  const controller = CLASSES[name]
  return controller === undefined ? undefined : { metadata: { name }, spec: { controller } }
}
const ingress = (ingressClassName?: string, annotation?: string): Ingress =>
  ({
    metadata: { annotations: annotation === undefined ? {} : { 'kubernetes.io/ingress.class': annotation } },
    spec: { ingressClassName },
  }) as unknown as Ingress

for (const [what, object, takesUnclassed, ours] of [
  ['it has the class of the controller', ingress('nginx'), false, true],
  ['it has the class of another controller', ingress('other'), true, false],
  ['its class does not exist', ingress('none'), true, false],
  ['it has no class, and the controller serves those', ingress(), true, true],
  ['it has no class, and the controller does not serve those', ingress(), false, false],
  ['it has the annotation of the controller, with any class', ingress('other', 'nginx'), false, true],
  ['it has the annotation of another controller', ingress('nginx', 'traefik'), true, false],
] as const)
  test(`the controller ${ours ? 'handles' : 'ignores'} an Ingress: ${what}`, () =>
    assert.equal(isOurs(object, classOf, { ...RULE, takesUnclassed }), ours))
