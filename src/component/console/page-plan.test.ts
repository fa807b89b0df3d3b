import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { listFiles, type PageFiles } from './page-files.ts'
import { type PagePlan, planPage } from './page-plan.ts'

const FILES: PageFiles = {
  index: '<html>',
  indexTag: 'tag',
  files: listFiles(['icon.svg', 'assets/main-1a.js', 'assets/main-1a.js.gz']),
}

/** The kind of response, and what it depends on. */
function summary(plan: PagePlan): string {
  if (plan.send === 'redirect') return `redirect ${plan.to}`
  if (plan.send === 'refusal') return `refusal ${plan.status}`
  if (plan.send === 'file') return `file ${plan.file.path} ${plan.encoding}${plan.isImmutable ? ' immutable' : ''}`
  return plan.send === 'index' ? `index ${plan.encoding}` : plan.send
}

describe('planPage()', () => {
  const rows: readonly (readonly [request: string, plan: string, headers?: Record<string, string>])[] = [
    ['GET /', 'redirect /ui/'],
    ['HEAD /', 'redirect /ui/'],
    ['GET /?x=1', 'redirect /ui/'],
    ['GET /ui', 'redirect /ui/'],
    ['GET /ui/', 'index identity'],
    ['GET /ui/', 'index br', { 'accept-encoding': 'gzip, br' }],
    ['GET /ui/c/local/pods?namespace=a', 'index identity'],
    ['GET /ui/index.html', 'index identity'],
    ['GET /ui/', 'unchanged', { 'if-none-match': 'W/"tag"' }],
    ['GET /ui/', 'unchanged', { 'if-none-match': '"other", "tag"' }],
    ['GET /ui/', 'index identity', { 'if-none-match': 'W/"other"' }],
    ['GET /ui/icon.svg', 'file icon.svg identity'],
    ['GET /ui/assets/main-1a.js', 'file assets/main-1a.js identity immutable'],
    ['GET /ui/assets/main-1a.js?x', 'file assets/main-1a.js identity immutable'],
    ['GET /ui/assets/main-1a.js', 'file assets/main-1a.js gzip immutable', { 'accept-encoding': 'gzip, br' }],
    ['GET /ui/assets/main-1a.js.gz', 'refusal 404'],
    ['GET /ui/assets/other.js', 'refusal 404'],
    ['GET /ui/assets/', 'refusal 404'],
    ['GET /ui/assets/%6dain-1a.js', 'refusal 404'],
    ['GET /ui/assets/__proto__', 'refusal 404'],
    ['GET /ui/assets/../index.html', 'refusal 400'],
    ['GET /ui/assets/%2e%2e/index.html', 'refusal 400'],
    ['GET /ui/assets/..%2findex.html', 'refusal 404'],
    ['GET /ui//assets/main-1a.js', 'refusal 400'],
    ['GET /ui/%00', 'refusal 400'],
    ['GET /ui/a%5cb', 'refusal 400'],
    ['GET http://other.example/ui/', 'refusal 400'],
    ['GET /UI/', 'refusal 404'],
    ['GET /other', 'refusal 404'],
    ['GET /uix', 'refusal 404'],
    ['POST /ui/', 'refusal 405'],
    ['PUT /', 'refusal 405'],
    ['OPTIONS /ui/assets/main-1a.js', 'refusal 405'],
    ['DELETE /ui/', 'refusal 405'],
    ['get /ui/', 'refusal 405'],
  ]
  for (const [request, wanted, headers = {}] of rows) {
    it(`returns "${wanted}" for ${request} with ${JSON.stringify(headers)}`, () => {
      const [method = '', path = ''] = request.split(' ')
      assert.equal(summary(planPage({ method, path, headers }, FILES)), wanted)
    })
  }

  it('says that the page was not built, but redirects all the same', () => {
    const plan = (path: string): string => summary(planPage({ method: 'GET', path, headers: {} }, undefined))
    assert.deepEqual(['/', '/ui/', '/ui/assets/a.js'].map(plan), ['redirect /ui/', 'not-built', 'not-built'])
  })
})
