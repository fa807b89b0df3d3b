import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Probe } from '#apis/core/v1.ts'
import { createVirtualClock } from '#lib/clock.ts'

import type { EventSpec } from '../pod/events.ts'
import { ContainerProbes } from './container-probes.ts'

describe('ContainerProbes', () => {
  it('records a ProbeWarning event for a probe that passes with a warning', async () => {
    const clock = createVirtualClock()
    const events: EventSpec[] = []
    const results: boolean[] = []
    const readinessProbe: Probe = { httpGet: { port: 80 }, periodSeconds: 60 }
    const probes = new ContainerProbes({
      spec: { readinessProbe },
      startedMs: clock.now(),
      clock,
      runProbe: async () => ({ isFine: true, warning: 'Probe terminated redirects, Response body: moved' }),
      isStarted: () => true,
      recordEvent: (note) => events.push(note),
      onResult: (_, isFine) => results.push(isFine),
      count: () => undefined,
    })
    await clock.advance(1000)
    probes.end()
    const message = 'Readiness probe warning: Probe terminated redirects, Response body: moved'
    assert.deepEqual([results, events], [[true], [{ type: 'Warning', reason: 'ProbeWarning', message }]])
  })
})
