/** Starts a control plane with some controllers, a fake kubelet and a virtual clock, for workload tests. */
import { Events } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import type { Controller } from '#controllers/controller.ts'
import { startControllers } from '#kits/controllers/start.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

import { createFakeKubelet, type FakeKubelet } from './fake-kubelet.ts'

export const namespace = 'default'

export interface Bench extends AsyncDisposable {
  readonly clock: VirtualClock
  readonly plane: ControlPlane
  readonly client: ApiClient
  readonly kubelet: FakeKubelet
  /** Lets time pass in small steps, so that what waits for one another gets its turn. */
  settle(ms?: number): Promise<void>
  /** `reason: message` of everything said about the kind, in order. */
  events(kind: string): Promise<string[]>
  stop(): Promise<void>
}

const STEP_MS = 500

export async function startBench(
  controllers: readonly Controller[],
  startMs: number = Date.UTC(2026, 0, 1),
): Promise<Bench> {
  const clock = createVirtualClock(startMs)
  const plane = await startControlPlane({ clock, settings: { 'disable-admission-plugins': ['ServiceAccount'] } })
  const kubelet = createFakeKubelet()
  const running = startControllers(plane, clock, [...controllers, kubelet])
  const { client } = running
  const stop = async (): Promise<void> => {
    await running.stop()
    await plane.stop()
  }
  return {
    clock,
    plane,
    client,
    kubelet,
    async settle(ms = 5000) {
      for (let passed = 0; passed < ms; passed += STEP_MS) await clock.advance(STEP_MS)
    },
    async events(kind) {
      const { items } = await client.list(Events, { namespace })
      const about = items.filter(({ involvedObject }) => involvedObject.kind === kind)
      return about.map(({ reason, message }) => `${reason}: ${message}`)
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
