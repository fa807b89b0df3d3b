import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { nearest } from './nearest.ts'

const WORDS = ['kube-apiserver', 'kubectl', 'kubelet', 'up', 'snapshot']

describe('nearest command name', () => {
  for (const [typed, expected] of [
    ['kubectl', ['kubectl']],
    ['kubeclt', ['kubectl', 'kubelet']],
    ['KUBELET', ['kubelet']],
    ['kubelt', ['kubectl', 'kubelet']],
    ['kube', ['kube-apiserver', 'kubectl', 'kubelet']],
    ['snap', ['snapshot']],
    ['upp', ['up']],
    ['elephant', []],
  ] as const) {
    it(`suggests ${expected.join(', ') || 'nothing'} for "${typed}"`, () =>
      assert.deepEqual(nearest(typed, WORDS), expected))
  }
})
