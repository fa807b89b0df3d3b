import assert from 'node:assert/strict'
import { test } from 'node:test'

import { realClock } from '#lib/clock.ts'

import type { Connection } from '../connection.ts'
import { dialSpdy } from './dial.ts'

test('who is refused hears what the server says, in upstream’s words', async () => {
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
    const ask = { connection, clock: realClock, userAgent: 'kubectl', path: '/attach', signal }
    await assert.rejects(dialSpdy(ask, ['v4.channel.k8s.io']), { message: `unable to upgrade connection: ${message}` })
  }
})
