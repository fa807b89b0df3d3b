/**
 * Tests who sees what of the past: random tenants send random requests for random moments while roles, bindings,
 * objects and namespaces come and go. A model of the test decides what each of them may see.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createSeededRandom, type Random } from '#lib/random.ts'

import { type Bed, METADATA, METADATA_LIST, type OpenWatch, past, PROTOBUF, startBed, TABLE, turns } from './bed.ts'
import { makeTenants, tenantPath, TenantWrites } from './tenant-writes.ts'
import {
  type Action,
  may,
  mayReadMoments,
  NAMESPACE_KIND,
  type Outcome,
  readPast,
  type Tenant,
  TENANT_KINDS,
  type TenantKind,
  type TenantObject,
  type Tenants,
} from './tenants.ts'

const USERS = 50
const STEPS = 100
const REQUESTS_OF_A_STEP = 55
const SEED = Number(process.env['PROPERTY_SEED'] ?? 1364) || 1364
const NAMES = ['a', 'b', 'c', 'd']
const NAMESPACES = ['blue', 'green', 'red', 'white', 'black']
/** More would keep all four past states in use. */
const MAX_WATCHES = 6

interface Moment {
  readonly text: string
  readonly state: Tenants
}

interface Plan {
  readonly tenant: Tenant
  readonly moment: Moment
  readonly kind: TenantKind
  readonly action: Action
  readonly path: string
  readonly accept: string | undefined
}

/** Counts for the report of the test. */
interface Counts {
  requests: number
  watches: number
  objects: number
  /** Lists of changes, refused ones included. */
  changes: number
  readonly outcomes: Record<Outcome, number>
}

/** Custom resources have no protobuf. */
const ANY_FORM = `${PROTOBUF},application/json`
const OBJECT_FORMS = [undefined, undefined, TABLE, METADATA, ANY_FORM, 'application/yaml']
const LIST_FORMS = [undefined, undefined, TABLE, METADATA_LIST, ANY_FORM, 'application/yaml']

class Fuzz {
  readonly counts: Counts = {
    requests: 0,
    watches: 0,
    objects: 0,
    changes: 0,
    outcomes: { allowed: 0, moments: 0, today: 0, earlier: 0, namespace: 0 },
  }
  readonly #bed: Bed
  readonly #random: Random
  readonly #tenants: readonly Tenant[]
  readonly #steps: readonly Tenants[]
  #watches: { readonly plan: Plan; readonly open: OpenWatch }[] = []

  constructor(bed: Bed, random: Random, tenants: readonly Tenant[], steps: readonly Tenants[]) {
    this.#bed = bed
    this.#random = random
    this.#tenants = tenants
    this.#steps = steps
  }

  /** Requests of one step. All of them have one of two moments: opening a past state takes time. */
  async run(count: number): Promise<void> {
    const moments = [this.#moment(), this.#moment()]
    for (let at = 0; at < count; at++) {
      const plan = this.#promisingPlan(moments[this.#random.int(2)] as Moment)
      await this.#send(plan)
      if (plan.action.verb === 'watch') continue
      await this.#evade(plan)
      await this.#list(plan)
    }
    await this.#discover(moments[0] as Moment)
  }

  /** Time has passed since the watches began: their events are there. */
  async endWatches(): Promise<void> {
    for (const { plan, open } of this.#watches) {
      this.#checkWatched(plan, open)
      await open.end()
    }
    this.#watches = []
  }

  get #now(): Tenants {
    return this.#steps.at(-1) as Tenants
  }

  #oneOf<T>(list: readonly T[]): T {
    return list[this.#random.int(list.length)] as T
  }

  #moment(): Moment {
    const back = Math.min(this.#steps.length, this.#random.int(2) === 0 ? 5 : this.#steps.length)
    const state = this.#steps[this.#steps.length - 1 - this.#random.int(back)] as Tenants
    const isTime = this.#random.int(2) === 0
    return { text: isTime ? new Date(state.timeMs).toISOString() : `rv:${state.revision}`, state }
  }

  /** Mostly one that is allowed today, so that the rules of that time decide. */
  #promisingPlan(moment: Moment): Plan {
    let plan = this.#plan(moment)
    if (this.#random.int(4) === 0) return plan
    for (let tries = 0; tries < 20 && !this.#isAllowedToday(plan); tries++) plan = this.#plan(moment)
    return plan
  }

  #isAllowedToday({ tenant, action }: Plan): boolean {
    return mayReadMoments(this.#now, tenant) && may(this.#now, tenant, action)
  }

  async #discover({ text }: Moment): Promise<void> {
    const tenant = this.#oneOf(this.#tenants)
    const path = this.#oneOf(['/api', '/apis', '/api/v1', '/apis/ex.io/v1', '/openapi/v2', '/openapi/v3', '/version'])
    const { status, text: answer } = await this.#bed.send(past(text, path), { as: { ...tenant, uid: '', extra: {} } })
    this.counts.requests++
    assert.equal(status, mayReadMoments(this.#now, tenant) ? 200 : 403, `${tenant.name} ${path}`)
    assert.deepEqual(marksIn(answer), [])
  }

  #plan(moment: Moment): Plan {
    const tenant = this.#oneOf(this.#tenants)
    const kind = this.#random.int(8) === 0 ? NAMESPACE_KIND : this.#oneOf(TENANT_KINDS)
    const draw = this.#random.int(10)
    const verb = draw < 4 ? 'get' : draw < 9 ? 'list' : 'watch'
    const { namespace, name } = this.#target(kind, verb)
    // As the path of a namespace says, it is inside itself.
    const isNamespace = kind === NAMESPACE_KIND && verb === 'get'
    const { group, resource } = kind
    const action = { verb, group, resource, namespace: isNamespace ? name : namespace, name }
    if (verb === 'get') {
      const accept = this.#oneOf(OBJECT_FORMS)
      return { tenant, moment, kind, action, path: tenantPath(kind, namespace, name), accept }
    }
    const query = new URLSearchParams({
      ...(name !== '' && { fieldSelector: `metadata.name=${name}` }),
      ...(verb === 'watch' && { watch: '1', timeoutSeconds: '2' }),
    })
    const path = `${tenantPath(kind, namespace)}?${query.toString()}`
    return { tenant, moment, kind, action, path, accept: verb === 'watch' ? undefined : this.#oneOf(LIST_FORMS) }
  }

  #target(kind: TenantKind, verb: string): { readonly namespace: string; readonly name: string } {
    const isEverywhere = !kind.isNamespaced || (verb !== 'get' && this.#random.int(3) === 0)
    const isOne = verb === 'get' || this.#random.int(4) === 0
    const names = kind === NAMESPACE_KIND ? NAMESPACES : NAMES
    return { namespace: isEverywhere ? '' : this.#oneOf(NAMESPACES), name: isOne ? this.#oneOf(names) : '' }
  }

  async #send(plan: Plan): Promise<void> {
    const { tenant, moment, action, path, accept } = plan
    if (action.verb === 'watch') return this.#watch(plan)
    this.counts.requests++
    const as = { ...tenant, uid: '', extra: {} }
    const reply = await this.#bed.send(past(moment.text, path), { as, ...(accept !== undefined && { accept }) })
    const outcome = this.#outcome(plan)
    this.counts.outcomes[outcome]++
    const marks = marksIn(reply.text)
    if (outcome !== 'allowed') {
      assert.deepEqual(marks, [], `${about(plan)} has objects in the refusal ${reply.status}`)
      assert.equal(reply.status, 403, `${about(plan)} is refused`)
      return
    }
    const expected = marksOf(plan, moment.state)
    const status = action.verb === 'get' && expected.length === 0 ? 404 : 200
    assert.equal(reply.status, status, `${about(plan)} is allowed`)
    assert.deepEqual(marks, expected, about(plan))
    this.counts.objects += marks.length
  }

  /** Ways to read another state than that of the moment: none may show an object that the moment does not have. */
  async #evade({ tenant, moment, kind, action, path }: Plan): Promise<void> {
    if (this.#random.int(5) > 0) return
    const older = this.#oneOf(this.#steps)
    const token = { v: 'meta.k8s.io/v1', rv: older.revision, start: '0\0' }
    const encoded = Buffer.from(JSON.stringify(token)).toString('base64url')
    const join = path.includes('?') ? '&' : '?'
    const tricks = [
      `${path}${join}resourceVersion=${older.revision}&resourceVersionMatch=Exact`,
      `${path}${join}continue=${encoded}&limit=100`,
      `${path}${join}limit=100&resourceVersion=${older.revision}`,
      path.replace(/\?|$/, '/?'),
      path.replace(/\/namespaces\/(\w+)/, '/namespaces/$1%2F..'),
      path.replace(/\/namespaces\/\w+\//, '/namespaces//'),
    ]
    // A revision after the moment would be waited for.
    if (older.revision > moment.state.revision) return
    this.counts.requests++
    const as = { ...tenant, uid: '', extra: {} }
    const trick = this.#oneOf(tricks)
    const { text } = await this.#bed.send(past(moment.text, trick), { as })
    const seen = marksIn(text)
    if (seen.length === 0) return
    const plan = { tenant, moment, kind, action, path: trick, accept: undefined }
    const allowed = this.#outcome(plan) === 'allowed' ? marksOf(plan, moment.state) : []
    assert.deepEqual(
      seen.filter((mark) => !allowed.includes(mark)),
      [],
      `${about(plan)} has other objects`,
    )
  }

  /** The changes between two moments, which need the permission in all namespaces. */
  async #list(plan: Plan): Promise<void> {
    if (this.#random.int(8) > 0) return
    const { tenant, moment, action, path } = plan
    const before = this.#oneOf(this.#steps)
    const { revision } = moment.state
    if (before.revision >= revision) return
    this.counts.requests++
    this.counts.changes++
    const as = { ...tenant, uid: '', extra: {} }
    const { status, text } = await this.#bed.send(past(`rv:${before.revision}..rv:${revision}`, path), { as })
    const isEverywhere = may(this.#now, tenant, { ...action, namespace: '' })
    const isAllowed = this.#isAllowedToday(plan) && isEverywhere
    assert.equal(status, isAllowed ? 200 : 403, `changes of ${about(plan)}`)
    const seen = marksIn(text)
    if (!isAllowed) return assert.deepEqual(seen, [], about(plan))
    const steps = this.#steps.filter((step) => step.revision > before.revision && step.revision <= revision)
    const made = steps.flatMap((step) => step.made.filter((object) => isSelected(plan, object))).map(({ mark }) => mark)
    const allowed = [...marksOf(plan, before), ...made]
    assert.deepEqual(
      seen.filter((mark) => !allowed.includes(mark)),
      [],
      `changes of ${about(plan)}`,
    )
    assert.deepEqual(
      made.filter((mark) => !seen.includes(mark)),
      [],
      `changes of ${about(plan)}`,
    )
  }

  async #watch(plan: Plan): Promise<void> {
    if (this.#watches.length >= MAX_WATCHES) return
    const [first] = this.#watches
    // All watches of a step have the same moment, because each other moment would open another past state.
    const moment = first === undefined ? { ...plan.moment, text: `${plan.moment.text}@1000x` } : first.plan.moment
    const own = { ...plan, moment }
    const as = { ...plan.tenant, uid: '', extra: {} }
    const open = await this.#bed.watch(past(moment.text, plan.path), { as })
    this.counts.requests++
    const outcome = this.#outcome(own)
    this.counts.outcomes[outcome]++
    const isAllowed = outcome === 'allowed'
    assert.equal(open.status, isAllowed ? 200 : 403, `${about(own)} is watched`)
    if (isAllowed) {
      this.counts.watches++
      this.#watches.push({ plan: own, open })
      return
    }
    await turns(2)
    assert.deepEqual(marksIn(open.bytes().toString('latin1')), [], about(own))
    await open.end()
  }

  /** A watch shows the objects of its moment, and those that came later. */
  #checkWatched(plan: Plan, open: OpenWatch): void {
    const later = this.#steps.filter(({ revision }) => revision > plan.moment.state.revision)
    const made = later.flatMap((step) => step.made.filter((object) => isSelected(plan, object)))
    const allowed = new Set([...marksOf(plan, plan.moment.state), ...made.map(({ mark }) => mark)])
    const seen = marksIn(open.bytes().toString('latin1'))
    assert.deepEqual(
      seen.filter((mark) => !allowed.has(mark)),
      [],
      `${about(plan)} has other objects`,
    )
    const kept = new Set(marksOf(plan, this.#now))
    // A watch that begins while the changes already play may have missed the others.
    const missing = marksOf(plan, plan.moment.state).filter((mark) => kept.has(mark) && !seen.includes(mark))
    assert.deepEqual(missing, [], `${about(plan)} lacks objects`)
    this.counts.objects += seen.length
  }

  #outcome({ tenant, moment, action }: Plan): Outcome {
    return readPast(this.#now, moment.state, tenant, action)
  }
}

function about({ tenant, moment, path, accept = '' }: Plan): string {
  return `${tenant.name} ${moment.text} ${path} ${accept}`
}

/** The objects that an answer contains. */
function marksIn(text: string): string[] {
  return [...new Set(text.match(/mark-\d+-/g))].sort()
}

/** The objects of a state that a request selects. */
function marksOf({ kind, action, path }: Plan, state: Tenants): string[] {
  const { name } = action
  if (kind === NAMESPACE_KIND) {
    const found = [...state.namespaces].filter(([own]) => name === '' || name === own)
    return found.map(([, { mark }]) => mark).sort()
  }
  const found = [...state.objects.values()].filter((object) => isSelected({ kind, action, path }, object))
  return found.map(({ mark }) => mark).sort()
}

function isSelected({ kind, action, path }: Pick<Plan, 'kind' | 'action' | 'path'>, object: TenantObject): boolean {
  const { namespace, name } = action
  const isEverywhere = !kind.isNamespaced || !path.includes('/namespaces/')
  const isInside = isEverywhere || object.namespace === namespace
  return object.kind === kind && isInside && (name === '' || object.name === name)
}

describe('the access to the past', () => {
  it('shows each of 50 users what the rules allow, and nothing else, in 5,000 requests', async (t) => {
    const random = createSeededRandom(SEED)
    await using bed = await startBed()
    const tenants = makeTenants(random, USERS)
    const writes = new TenantWrites(bed, random, tenants)
    await writes.prepare()
    const fuzz = new Fuzz(bed, random, tenants, writes.steps)
    for (let step = 0; step < STEPS; step++) {
      await bed.clock.advance(1000 + random.int(3000))
      await fuzz.endWatches()
      await writes.step()
      await fuzz.run(REQUESTS_OF_A_STEP)
    }
    await bed.clock.advance(2000)
    await fuzz.endWatches()
    const { requests, watches, objects, changes, outcomes } = fuzz.counts
    t.diagnostic(
      `${requests} requests, ${watches} watches, ${changes} lists of changes, ${objects} objects, ${JSON.stringify(outcomes)}`,
    )
    assert.ok(requests >= 5000 && watches > 20 && objects > 500 && changes > 100)
    // Each rule decides often enough to be tested.
    for (const [rule, count] of Object.entries(outcomes)) assert.ok(count > 50, `${rule}: ${count}`)
  })
})
