/** Tests port forwards in a real browser: the link, its cookies, the list and the buttons. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { Pods, Services } from '#apis/core/v1.ts'
import { RoleBindings } from '#apis/rbac/v1.ts'

import { type BrowserBed, checkFitsNarrowScreen, startBrowserBed, whyNoBrowser } from './browser-bed.ts'
import { fakePods, type PodConnection } from './pod-ports.ts'

/** Answers a request with its head as text. */
async function showHead({ data }: PodConnection): Promise<void> {
  let head = ''
  for await (const bytes of data) {
    head += bytes.toString('latin1')
    if (head.includes('\r\n\r\n')) break
  }
  const fields = 'Content-Type: text/plain\r\nSet-Cookie: pod=1\r\nConnection: close'
  await data.write(Buffer.from(`HTTP/1.1 200 OK\r\n${fields}\r\nContent-Length: ${head.length}\r\n\r\n${head}`))
  data.end()
}

describe('port forwards in the browser', { skip: whyNoBrowser }, () => {
  let bed: BrowserBed
  const pods = fakePods()
  pods.serve = showHead
  before(async () => {
    bed = await startBrowserBed({ nodes: 1 }, pods)
    const { client } = bed.cluster
    const ports = [{ name: 'http', containerPort: 8080 }, { containerPort: 5432 }]
    await client.create(Pods, {
      metadata: { name: 'web', namespace: 'default', labels: { app: 'web' } },
      spec: { containers: [{ name: 'app', image: 'shop', ports }] },
    } as never)
    await client.create(Services, {
      metadata: { name: 'web', namespace: 'default' },
      spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 'http' }] },
    })
    await client.create(RoleBindings, {
      metadata: { name: 'readers', namespace: 'default' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
      subjects: [{ kind: 'User', name: 'ada', apiGroup: 'rbac.authorization.k8s.io' }],
    })
  })
  after(() => bed?.[Symbol.asyncDispose]())

  async function checkAccess(): Promise<void> {
    for (const theme of ['light', 'dark'] as const) assert.deepEqual(await bed.violations(theme), [])
  }

  it('open a link that sends no cookie of the console', async () => {
    const { page } = bed
    await bed.open('/core/v1/pods/default/web')
    await page.getByRole('button', { name: 'Forward port 8080' }).click()
    const link = page.getByRole('link', { name: /^http:\/\/[0-9a-f]+\.localhost:\d+\/$/ })
    await link.waitFor()
    await checkAccess()
    const opened = page.context().waitForEvent('page')
    await link.click()
    const other = await opened
    // A new tab is empty at first.
    await other.getByText('GET / HTTP/1.1').waitFor()
    const text = await other.locator('body').textContent()
    assert.match(text ?? '', /^GET \/ HTTP\/1\.1/)
    assert.match(text ?? '', /host: [0-9a-f]+\.localhost:\d+/i)
    assert.doesNotMatch(text ?? '', /cookie|referer/i)
    const { port } = new URL((await link.textContent()) ?? '')
    await other.goto(`http://127.0.0.1:${port}/`)
    await other.getByText('which pods must not get').waitFor()
    await other.close()
  })

  it('list bytes and errors, and stop', async () => {
    const { page } = bed
    await page.getByText(/^\d+ open connections? of \d+, [\d.]+ (?:B|KiB) sent, [\d.]+ (?:B|KiB) received$/).waitFor()
    await bed.open('/forwards')
    await page.getByRole('heading', { name: 'Pod default/web, port 8080' }).waitFor()
    await page.getByText(/\d+ errors?, the last one: A request had the cookie of the console/).waitFor()
    await checkAccess()
    await checkFitsNarrowScreen(page)
    await page.getByRole('button', { name: /^Stop http/ }).click()
    await page.getByRole('heading', { name: 'There are no port forwards' }).waitFor()
    await checkAccess()
  })

  it('lead to a pod behind a Service', async () => {
    const { page } = bed
    await bed.open('/core/v1/services/default/web')
    await page.getByRole('button', { name: 'Forward port 80' }).click()
    const link = await page.getByRole('link', { name: /localhost/ }).textContent()
    const other = await page.context().newPage()
    await other.goto(link ?? '')
    await other.close()
    await page.getByText(/by pod web$/).waitFor()
  })

  it('are offered only to users who may', async () => {
    const page = await bed.openAs('ada', '/core/v1/pods/default/web')
    await page.getByRole('heading', { name: 'Container app' }).waitFor()
    assert.equal(await page.getByRole('button', { name: /^Forward/ }).count(), 0)
  })

  it('ran no foreign script and broke no rule of the Content-Security-Policy', () => {
    assert.deepEqual(bed.troubles, [])
  })
})
