import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'

import { nestedMounts } from './nested-mounts.ts'

const podWith = (...mounts: readonly (readonly [name: string, mountPath: string])[]): Pod =>
  ({
    spec: { containers: [{ name: 'c', volumeMounts: mounts.map(([name, mountPath]) => ({ name, mountPath })) }] },
  }) as unknown as Pod

test('mount points of a container inside a volume are created, except those inside another of them', () => {
  const pod = podWith(
    ['a', '/dir/'],
    ['b', '/dir/nested'],
    ['c', '/dir/nested/other'],
    ['d', '/dir/nested2'],
    ['e', '/dirty'],
  )
  assert.deepEqual(nestedMounts(pod, 'a'), ['nested', 'nested2'])
  assert.deepEqual(nestedMounts(pod, 'b'), ['other'])
  assert.deepEqual(nestedMounts(pod, 'e'), [])
})

test('a mount path outside the container is rejected', () => {
  assert.throws(() => nestedMounts(podWith(['a', '../x']), 'a'), /invalid container mount point \.\.\/x/)
})
