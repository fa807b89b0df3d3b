import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'

import { allContainerNames, chosenContainer, DEFAULT_CONTAINER } from './containers.ts'
import { logSources, prefixed } from './pod-logs.ts'
import { activeLast, loggingFirst } from './pod-order.ts'
import { detachKeys, untilKeys } from './terminal.ts'

function podOf(spec: object, rest: object = {}): Pod {
  return { metadata: { name: 'p', namespace: 'n' }, spec, ...rest } as unknown as Pod
}

const TWO = podOf({
  containers: [{ name: 'a' }, { name: 'b' }],
  initContainers: [{ name: 'i' }],
  ephemeralContainers: [{ name: 'e' }],
})

describe('container choice of kubectl exec and attach', () => {
  it('selects the first container and prints that', () => {
    const lines: string[] = []
    assert.equal(chosenContainer(TWO, '', (line) => lines.push(line)).container.name, 'a')
    assert.deepEqual(lines, ['Defaulted container "a" out of: a, b, e (ephem), i (init)\n'])
  })

  it('selects the container in the default-container annotation', () => {
    const pod = { ...TWO, metadata: { ...TWO.metadata, annotations: { [DEFAULT_CONTAINER]: 'b' } } }
    assert.equal(chosenContainer(pod, '', assert.fail).container.name, 'b')
  })

  it('accepts a container of any of the three lists', () => {
    assert.equal(chosenContainer(TWO, 'e', assert.fail).field, 'ephemeralContainers')
    assert.throws(() => chosenContainer(TWO, 'x', assert.fail), {
      message: `container x is not valid for pod p out of: ${allContainerNames(TWO)}`,
    })
  })
})

describe('kubectl logs', () => {
  it('lists init containers first with --all-containers', () => {
    const sources = logSources(TWO, { options: { container: '' }, allContainers: true }, assert.fail)
    assert.deepEqual(
      sources.map(({ container }) => container),
      ['i', 'a', 'b', 'e'],
    )
  })

  it('prefixes each line, including an incomplete last one', async () => {
    const parts: string[] = []
    const write = prefixed('> ', (data) => Promise.resolve(void parts.push(data.toString())))
    await write(Buffer.from('one\ntwo\nthr'))
    assert.deepEqual(parts, ['> one\n> two\n> thr'])
  })
})

describe('pod choice of kubectl for a workload', () => {
  const running = podOf({ nodeName: 'n' }, { status: { phase: 'Running' } })
  const pending = podOf({}, { status: { phase: 'Pending' } })
  const restarted = podOf({ nodeName: 'n' }, { status: { phase: 'Running', containerStatuses: [{ restartCount: 2 }] } })

  it('prefers pods with logs for kubectl logs', () => {
    assert.deepEqual([pending, running, restarted].sort(loggingFirst), [restarted, running, pending])
  })

  it('prefers active pods for kubectl attach', () => {
    assert.deepEqual(
      [pending, restarted, running].sort((one, other) => activeLast(other, one)),
      [running, restarted, pending],
    )
  })
})

describe('detach keys of kubectl attach', () => {
  async function typed(...pieces: string[]): Promise<{ passed: string; isDetached: boolean }> {
    let isDetached = false
    let passed = ''
    async function* source(): AsyncGenerator<Buffer> {
      for (const piece of pieces) yield Buffer.from(piece)
    }
    const keys = detachKeys('ctrl-p,ctrl-q')
    for await (const data of untilKeys(source(), keys, () => (isDetached = true))) passed += data.toString()
    return { passed, isDetached }
  }

  it('end the session, also if they arrive one by one', async () => {
    assert.deepEqual(await typed('ab\u0010', '\u0011cd'), { passed: 'ab', isDetached: true })
  })

  it('are passed on if the sequence is not completed', async () => {
    assert.deepEqual(await typed('\u0010x', '\u0010', '\u0010y'), { passed: '\u0010x\u0010\u0010y', isDetached: false })
  })

  it('are rejected if they are invalid keys', () => {
    assert.deepEqual([...detachKeys('a,ctrl-c')], [97, 3])
    assert.throws(() => detachKeys('ctrl-1'), /unknown character/)
  })
})
