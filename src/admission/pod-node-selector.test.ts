import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'
import { admit, refusalStatus, type SampleWrite } from '#kits/admission/sample-write.ts'

import { createPodNodeSelector, type NodeSelectorsByNamespace } from './pod-node-selector.ts'

interface Case {
  readonly own?: Readonly<Record<string, string>>
  readonly annotation?: string
  readonly configured?: NodeSelectorsByNamespace
  readonly generateName?: string
}

function write({ own, annotation, generateName }: Case): SampleWrite {
  const annotations = annotation === undefined ? {} : { 'scheduler.alpha.kubernetes.io/node-selector': annotation }
  const metadata = generateName === undefined ? { name: 'p' } : { name: `${generateName}abcde`, generateName }
  return {
    resource: 'pods',
    object: { metadata, spec: { nodeSelector: own, containers: [] } },
    world: { namespaces: [{ metadata: { name: 'ns', annotations } }] },
  }
}

describe('PodNodeSelector', () => {
  const merged: readonly (readonly [what: string, given: Case, selector: object | undefined])[] = [
    ['no selector without annotation and configuration', { own: { a: 'b' } }, { a: 'b' }],
    ['the selector in the annotation of the namespace', { annotation: 'env=dev, zone = x' }, { env: 'dev', zone: 'x' }],
    [
      'the selector of the namespace to that of the pod',
      { own: { a: 'b' }, annotation: 'env=dev' },
      { env: 'dev', a: 'b' },
    ],
    ['the default selector of the cluster', { configured: { clusterDefaultNodeSelector: 'a=b' } }, { a: 'b' }],
    [
      'no selector if the annotation is empty, despite a default of the cluster',
      { annotation: '', configured: { clusterDefaultNodeSelector: 'a=b' } },
      undefined,
    ],
    ['a selector that the whitelist allows', { annotation: 'a=b', configured: { ns: 'a=b,c=d' } }, { a: 'b' }],
  ]
  for (const [what, given, selector] of merged) {
    it(`adds ${what}`, async () => {
      const pod = (await admit(createPodNodeSelector(given.configured), write(given))) as Pod
      assert.deepEqual(pod.spec.nodeSelector, selector)
    })
  }

  const conflict = 'forbidden: pod node label selector conflicts with its namespace node label selector'
  const beyond = 'forbidden: pod node label selector labels conflict with its namespace whitelist'
  const refused: readonly (readonly [what: string, given: Case, code: number, message: string])[] = [
    ['a conflicting value', { own: { env: 'prod' }, annotation: 'env=dev' }, 403, `pods "p" is ${conflict}`],
    [
      'a conflicting value and a generated name',
      { own: { env: 'prod' }, annotation: 'env=dev', generateName: 'g-' },
      403,
      `pods is ${conflict}`,
    ],
    ['a label beyond the whitelist', { own: { a: 'b' }, configured: { ns: 'c=d' } }, 403, `pods "p" is ${beyond}`],
    ['an annotation that is no list of labels', { annotation: 'a=b=c' }, 500, 'invalid selector: [a b c]'],
  ]
  for (const [what, given, code, message] of refused) {
    it(`rejects a pod with ${what}`, async () => {
      const status = await refusalStatus(createPodNodeSelector(given.configured), write(given))
      assert.deepEqual([status?.code, status?.message], [code, message])
    })
  }

  it('names the invalid label in its error', async () => {
    const messageOf = async (annotation: string): Promise<string | undefined> =>
      (await refusalStatus(createPodNodeSelector(), write({ annotation })))?.message
    assert.match((await messageOf('a b=c')) ?? '', /^<nil>: Invalid value: "a b": name part must consist of/)
    assert.match((await messageOf('a=b c')) ?? '', /^\[a\]: Invalid value: "b c": a valid label must be/)
  })

  it('rejects a pod if its namespace does not exist', async () => {
    const status = await refusalStatus(createPodNodeSelector(), { ...write({}), world: {} })
    assert.deepEqual([status?.code, status?.message], [500, 'Internal error occurred: namespace ns does not exist'])
  })
})
