import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { formatAnswers, parseAnswers } from './answers.ts'
import type { Recording } from './recording.ts'

const POD = ['Pod web-* spec.nodeName: "a"', 'Pod web-* status.phase: "Running"']

function recording(objects: readonly string[], more: Partial<Recording> = {}): Recording {
  return { objects: objects.toSorted((a, b) => (a < b ? -1 : 1)), conditions: [], events: [], lost: [], ...more }
}

describe('recorded answers of scenarios', () => {
  const answers = new Map([
    ['a pod', recording(POD)],
    ['two pods, of which one fails', recording([...POD, POD[0] ?? '', 'Pod web-* status.phase: "Failed"'])],
    ['a pod without a node', recording(['Pod web-* status.phase: "Pending"', 'Job web status: {}'])],
    [
      'others',
      recording([], {
        conditions: ['Job web phase 1: Active'],
        events: ['Job web Normal Made: it x2'],
        lost: ['kept 1,2'],
      }),
    ],
  ])

  it('round-trip through their file format', () => {
    assert.deepEqual([...parseAnswers(formatAnswers(answers))], [...answers])
  })

  it('list the common properties of a kind once instead of for each object', () => {
    const text = formatAnswers(answers)
    assert.equal(text.match(/spec.nodeName/g)?.length, 2, text)
    assert.match(text, /^Pod \*\n {2}spec.nodeName: "a"\n {2}status.phase: "Running"\n== a pod\nPod web-\*\n== two/m)
    assert.match(text, /^Pod web-\* ×2\n {2}status.phase: "Failed" ×1\n {2}status.phase: "Running" ×1\n/m)
  })
})
