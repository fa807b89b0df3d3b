/** Tests which objects a search finds, how much it reads, and what it says about the rest. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Kind } from '../api/kinds.ts'
import { RequestError } from '../api/request.ts'
import { type Found, MAX_HITS, MAX_PAGES, type MetadataList, searchKinds } from './search-kinds.ts'
import { parseSearch, rankOf } from './search-query.ts'
import { searchedKinds } from './searched-kinds.ts'

function kind(plural: string, group = '', name = plural): Kind {
  const names = { singular: '', shortNames: [], subresources: [] }
  return { group, version: 'v1', plural, kind: name, isNamespaced: true, verbs: ['list'], ...names }
}

function objects(...names: readonly string[]): MetadataList {
  return { items: names.map((name) => ({ metadata: { name, namespace: 'shop', uid: name } })) }
}

interface Run {
  readonly found: Found
  readonly paths: readonly string[]
  readonly most: number
}

async function run(kinds: readonly Kind[], text: string, list: (path: string) => MetadataList): Promise<Run> {
  const [reports, paths]: [Found[], string[]] = [[], []]
  let [open, most] = [0, 0]
  await searchKinds(kinds, parseSearch(text) ?? { words: [], labels: '' }, {
    atOnce: 2,
    report: (found) => void reports.push(found),
    list: async (path) => {
      paths.push(path)
      most = Math.max(most, ++open)
      await Promise.resolve()
      open--
      return list(path)
    },
  })
  const found = reports.at(-1)
  assert.ok(found)
  return { found, paths, most }
}

describe('the text of a search', () => {
  const cases: readonly (readonly [text: string, query: ReturnType<typeof parseSearch>])[] = [
    ['', undefined],
    ['a', undefined],
    ['Web', { words: ['web'], labels: '' }],
    [' web  db ', { words: ['web', 'db'], labels: '' }],
    ['app=web', { words: [], labels: 'app=web' }],
    ['web app=web tier!=old', { words: ['web'], labels: 'app=web,tier!=old' }],
    ['=x', undefined],
  ]
  for (const [text, query] of cases) it(`reads "${text}"`, () => assert.deepEqual(parseSearch(text), query))

  it('ranks the name itself before its beginning and its parts', () => {
    const query = { words: ['web'], labels: '' }
    assert.deepEqual(
      ['web', 'web-1', 'my-web', 'db'].map((name) => rankOf(name, query)),
      [3, 2, 1, 0],
    )
  })
})

describe('the kinds of a search', () => {
  it('are those that people look for, first', () => {
    const all = [
      kind('widgets', 'example.com'),
      kind('events'),
      kind('configmaps'),
      kind('pods'),
      kind('leases', 'coordination.k8s.io'),
      kind('pods', 'metrics.k8s.io'),
    ]
    assert.deepEqual(
      searchedKinds(all).map(({ plural, group }) => plural + group),
      ['pods', 'configmaps', 'widgetsexample.com'],
    )
  })
})

describe('a search', () => {
  it('reads a few kinds at a time and groups by kind in order', async () => {
    const kinds = ['pods', 'secrets', 'services'].map((plural) => kind(plural))
    const { found, most } = await run(kinds, 'web', (path) =>
      path.includes('secrets') ? objects('db') : objects('my-web', 'web', 'web-2'),
    )
    assert.equal(most, 2)
    assert.deepEqual(
      found.groups.map((group) => [group.kind.plural, group.hits.map(({ name }) => name)]),
      [
        ['pods', ['web', 'web-2', 'my-web']],
        ['services', ['web', 'web-2', 'my-web']],
      ],
    )
    assert.deepEqual([found.searched, found.kinds], [3, 3])
  })

  it('ends after some pages, says so, and still finds the object with exactly this name', async () => {
    const { found, paths } = await run([kind('pods')], 'needle', (path) => {
      if (path.includes('fieldSelector')) return objects('needle')
      return { ...objects(`needle-${path.length}`), metadata: { continue: path.slice(-40), remainingItemCount: 7000 } }
    })
    assert.equal(paths.length, MAX_PAGES + 1)
    assert.equal(found.groups[0]?.hits[0]?.name, 'needle')
    assert.deepEqual(found.cut, [{ kind: 'pods', read: MAX_PAGES, left: 7000 }])
  })

  it('counts kinds that the user may not list, and names other failures', async () => {
    const kinds = [kind('pods'), kind('secrets'), kind('widgets', 'example.com')]
    const { found } = await run(kinds, 'web', (path) => {
      if (path.includes('secrets')) throw new RequestError({ code: 403, message: 'no' })
      if (path.includes('widgets')) throw new RequestError({ code: 503, message: 'The conversion failed' })
      return objects('web')
    })
    assert.equal(found.refused, 1)
    assert.deepEqual(found.failed, [{ kind: 'widgets.example.com', message: 'The conversion failed' }])
    assert.equal(found.groups.length, 1)
  })

  it('shows a limited number of objects of a kind, and skips what is no object', async () => {
    const many = Array.from({ length: 200 }, (_, at) => `web-${at}`)
    const { found } = await run([kind('pods')], 'web', () => ({
      items: [...(objects(...many).items ?? []), {}, null as never, { metadata: { name: 7 as never } }],
    }))
    assert.deepEqual([found.groups[0]?.total, found.groups[0]?.hits.length], [200, MAX_HITS])
  })
})
