import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Pod, PodSpec } from '#apis/core/v1.ts'

import type { VolumeSources } from '../volume-plugin.ts'
import { emptyDir } from './empty-dir.ts'

const SOURCES = { allocatable: () => ({ memory: '1Gi' }) } as unknown as VolumeSources

async function optionsOf(medium: string, sizeLimit?: string, spec: Partial<PodSpec> = {}): Promise<readonly string[]> {
  const pod = { metadata: {}, spec: { containers: [{ name: 'c' }], ...spec } } as unknown as Pod
  const volume = { name: 'v', emptyDir: { medium, ...(sizeLimit !== undefined && { sizeLimit }) } }
  const plan = await emptyDir.plan({ pod, volume }, SOURCES)
  return plan.at === 'pod' ? (plan.memory?.options ?? []) : []
}

const limited = (memory: string): Partial<PodSpec> => ({
  containers: [{ name: 'c', resources: { limits: { memory } } }],
})

test('the size limit of a memory emptyDir is the smallest of the node’s, the pod’s and the volume’s', async () => {
  assert.deepEqual(await optionsOf(''), [])
  assert.deepEqual(await optionsOf('Memory'), ['size=1073741824'])
  assert.deepEqual(await optionsOf('Memory', '64Mi'), ['size=67108864'])
  assert.deepEqual(await optionsOf('Memory', '64Gi'), ['size=1073741824'])
  assert.deepEqual(await optionsOf('Memory', '0'), ['size=1073741824'])
  assert.deepEqual(await optionsOf('Memory', undefined, limited('128Mi')), ['size=134217728'])
  assert.deepEqual(await optionsOf('Memory', '256Mi', limited('128Mi')), ['size=134217728'])
  const two = { containers: [...(limited('128Mi').containers ?? []), { name: 'd', resources: {} }] }
  assert.deepEqual(await optionsOf('Memory', undefined, two), ['size=1073741824'])
})

test('an emptyDir of huge pages has the requested page size', async () => {
  const asking = (...sizes: string[]): Partial<PodSpec> => ({
    containers: sizes.map((size) => ({ name: size, resources: { requests: { [`hugepages-${size}`]: '1Gi' } } })),
  })
  assert.deepEqual(await optionsOf('HugePages', undefined, asking('2Mi')), ['pagesize=2Mi'])
  assert.deepEqual(await optionsOf('HugePages-1Gi', undefined, asking('2Mi', '1Gi')), ['pagesize=1Gi'])
  await assert.rejects(optionsOf('HugePages', undefined, asking('2Mi', '1Gi')), {
    message: "medium: HugePages can't be used if container requests multiple huge page sizes",
  })
  await assert.rejects(optionsOf('HugePages-1Gi', undefined, asking('2Mi')), {
    message: 'medium HugePages-1Gi: hugePages storage requested, but there is no resource request for huge pages',
  })
  await assert.rejects(optionsOf('Tape'), { message: 'unknown storage medium "Tape"' })
})
