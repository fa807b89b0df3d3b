import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { rewriteHtml } from './rewrite-html.ts'

const rewrite = (link: string): string => (link.startsWith('/') ? `/p${link}` : link)

async function page(pieces: readonly string[]): Promise<string> {
  const source = (async function* () {
    for (const piece of pieces) yield Buffer.from(piece, 'latin1')
  })()
  const out: Buffer[] = []
  for await (const piece of rewriteHtml(source, rewrite)) out.push(piece)
  return Buffer.concat(out).toString('latin1')
}

const PAGES: readonly (readonly [string, string, string])[] = [
  ['an ordinary link', '<a href="/x">/x</a>', '<a href="/p/x">/x</a>'],
  ['single quotes, missing quotes, and capitals', "<A HREF='/x'><a href=/y>", '<A HREF="/p/x"><a href="/p/y">'],
  ['spaces around the equals sign', '<a href = "/x" >', '<a href = "/p/x" >'],
  ['a relative link', '<a href="x">', '<a href="x">'],
  ['an attribute without a link', '<a data-href="/x" title="/x">', '<a data-href="/x" title="/x">'],
  ['an element without links', '<p href="/x">', '<p href="/x">'],
  ['several attributes', '<img src="/a" alt="x>y" longdesc="/b">', '<img src="/p/a" alt="x>y" longdesc="/p/b">'],
  ['entities', '<a href="/x?a=1&amp;b=&quot;">', '<a href="/p/x?a=1&amp;b=&#34;">'],
  ['a tag that closes itself', '<link href="/x"/><br/>', '<link href="/p/x"/><br/>'],
  ['a comment', '<!-- <a href="/x"> --><a href="/y">', '<!-- <a href="/x"> --><a href="/p/y">'],
  ['a script', '<script src="/s">a<b;"<a href=\'/x\'>"</script>', '<script src="/p/s">a<b;"<a href=\'/x\'>"</script>'],
  ['text that looks like a tag', '1 < 2 <3 <> </ > <a href="/x">', '1 < 2 <3 <> </ > <a href="/p/x">'],
  ['a doctype', '<!DOCTYPE html><base href="/">', '<!DOCTYPE html><base href="/p/">'],
  ['an unterminated tag', 'x<a href="/x', 'x<a href="/x'],
  ['an unterminated quote', '<a href="/x>y</a>', '<a href="/x>y</a>'],
]

describe('link rewriting in proxied HTML', () => {
  for (const [what, before, after] of PAGES) {
    it(`handles ${what} as upstream does`, async () => assert.equal(await page([before]), after))
  }

  it('finds links across any chunk boundary', async () => {
    const whole = PAGES.slice(0, -2)
      .map(([, before]) => before)
      .join('\n')
    const expected = await page([whole])
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(whole.length), { maxLength: 20 }), async (cuts) => {
        const edges = [0, ...cuts.toSorted((a, b) => a - b), whole.length]
        assert.equal(await page(edges.slice(1).map((end, at) => whole.slice(edges[at], end))), expected)
      }),
    )
  })

  it('leaves every byte outside of links unchanged', async () => {
    const bytes = fc.string({ unit: fc.constantFrom('<', '>', '"', "'", '=', 'a', '!', '-', '/', ' ', '\xff', '\0') })
    await fc.assert(
      fc.asyncProperty(bytes, async (text) => assert.equal(await page([text]), text)),
      { numRuns: 300 },
    )
  })

  it('skips a tag that is too long', async () => {
    const long = `<a ${'x'.repeat(20_000)} href="/x">`
    assert.equal((await page([long.slice(0, 18_000), long.slice(18_000)])).length, long.length)
  })

  it('takes linear time for a hostile tag', async () => {
    const tag = `<a ${'a '.repeat(4000)}${'='.repeat(4000)}${'"'.repeat(3000)}>`
    assert.equal(await page(Array.from({ length: 100 }, () => tag)), tag.repeat(100))
  })
})
