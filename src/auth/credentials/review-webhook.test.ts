import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import type { HttpClient, HttpRequest } from '#lib/http/client.ts'
import { HttpError } from '#lib/http/http-error.ts'

import { createReviewWebhook } from './review-webhook.ts'

type Reply = { readonly status: number; readonly body: string } | Error

function createWorld(...replies: Reply[]) {
  const clock = createVirtualClock()
  const sent: HttpRequest[] = []
  const client = {
    request(request: HttpRequest) {
      sent.push(request)
      const reply = replies[Math.min(sent.length, replies.length) - 1]
      if (reply instanceof Error || reply === undefined) return Promise.reject(reply ?? new Error('none'))
      return Promise.resolve({ status: reply.status, text: () => Promise.resolve(reply.body) })
    },
  } as unknown as HttpClient
  const send = createReviewWebhook({ clock, client, url: 'https://hook.example/x' })
  return { clock, sent, send }
}

const good = { status: 201, body: '{"status":{"allowed":true}}' }
const away = new HttpError('connect', 'refused')

describe('call of a review webhook', () => {
  it('sends the review and returns its status', async () => {
    const { send, sent } = createWorld(good)
    assert.deepEqual(await send({ kind: 'SubjectAccessReview' }), { allowed: true })
    assert.equal(sent[0]?.body, '{"kind":"SubjectAccessReview"}')
    assert.equal(sent[0]?.method, 'POST')
  })

  it('is retried after a temporary failure', async () => {
    for (const trouble of [{ status: 503, body: 'later' }, { status: 429, body: '' }, away]) {
      const { send, sent, clock } = createWorld(trouble, trouble, good)
      const answer = send({})
      await clock.advance(2000)
      assert.deepEqual(await answer, { allowed: true })
      assert.equal(sent.length, 3)
    }
  })

  it('fails after five attempts', async () => {
    const { send, sent, clock } = createWorld(away)
    const outcome = assert.rejects(send({}), /refused/)
    await clock.advance(10_000)
    await outcome
    assert.equal(sent.length, 5)
  })

  it('is not retried after a 4xx response, a redirect or a malformed answer', async () => {
    for (const reply of [
      { status: 403, body: 'no' },
      { status: 302, body: '' },
      { status: 200, body: 'x' },
      { status: 200, body: '[]' },
      { status: 200, body: '{"status":1}' },
    ]) {
      const { send, sent } = createWorld(reply)
      await assert.rejects(send({}))
      assert.equal(sent.length, 1, JSON.stringify(reply))
    }
  })
})
