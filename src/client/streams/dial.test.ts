import assert from 'node:assert/strict'
import { test } from 'node:test'

import { realClock } from '#lib/clock.ts'

import type { Connection } from '../connection/connection.ts'
import { dialSpdy } from './dial.ts'

test("dialSpdy() rejects with the server's message in upstream's format", async () => {
  for (const [body, message] of [
    [
      '{"kind":"Status","message":"pod web does not have a host assigned","code":400}',
      'pod web does not have a host assigned',
    ],
    ['{"error":" no "}', 'no'],
    ['404 page not found\n', '404 page not found'],
    ['null', 'null'],
    ['', 'empty server response'],
  ] as const) {
    const connection = {
      server: 'https://127.0.0.1:1/',
      upgrade: async () => ({ isUpgraded: false, response: { text: async () => body } }),
    } as unknown as Connection
    const signal = new AbortController().signal
    const request = { connection, clock: realClock, userAgent: 'kubectl', path: '/attach', signal }
    await assert.rejects(dialSpdy(request, ['v4.channel.k8s.io']), {
      message: `unable to upgrade connection: ${message}`,
    })
  }
})
