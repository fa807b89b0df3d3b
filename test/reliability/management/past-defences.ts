/** The list of defences of the past of a cluster, for `management-defences.ts`. */
import type { Defence } from './defence.ts'

const PAST = 'src/control-plane/past'
const FUZZ = 'test/integration/past'
const SHOWN: Defence['test'] = [
  `${FUZZ}/access-fuzz.test.ts`,
  'shows each of 50 users what the rules allow, and nothing else, in 5,000 requests',
]

export const PAST_DEFENCES: readonly Defence[] = [
  {
    attack: 'reading the past without the permission for it',
    file: `${PAST}/past-access.ts`,
    text: 'if (!(await authorizeNow(user, MOMENTS)).allowed)',
    without: 'if (user.name === MOMENTS.name)',
    test: SHOWN,
  },
  {
    attack: 'forgetting the past with the permission to read it',
    file: `${PAST}/past-access.ts`,
    text: 'if (isForgetting && !(await authorizeNow(user, FORGET)).allowed)',
    without: 'if (isForgetting && user.name === FORGET.name)',
    test: [`${FUZZ}/forget.test.ts`, 'needs its own permission'],
  },
  {
    attack: 'a forgotten object in a past state that is still open',
    file: `${PAST}/past-server.ts`,
    text: 'await this.#states.closeAll()',
    without: 'void this.#states',
    test: [`${FUZZ}/forget.test.ts`, 'forgets an object, and nothing else'],
  },
  {
    attack: 'reading the past of objects that the user may not read today',
    file: `${PAST}/past-access.ts`,
    text: 'const decision = await authorizeNow(user, access)',
    without: 'const decision = { ...(await authorizeNow(user, access)), allowed: true }',
    test: SHOWN,
  },
  {
    attack: 'reading what the user was not allowed to read at that time',
    file: `${PAST}/past-access.ts`,
    text: 'if (!(await asAuthorize(past.authorizer)(user, access)).allowed) return',
    without: 'if (user.name === namespace) return',
    test: SHOWN,
  },
  {
    attack: 'reading an earlier namespace of the same name',
    file: `${PAST}/past-access.ts`,
    text: 'then !== undefined && then === now ?',
    without: 'then !== now || then === now ?',
    test: SHOWN,
  },
  {
    attack: 'a permission in one namespace taken for one in all namespaces',
    file: `${PAST}/past-access.ts`,
    text: "if ((await authorizeNow(user, { ...access, namespace: '' })).allowed) return decision",
    without: 'if ((await authorizeNow(user, access)).allowed) return decision',
    test: SHOWN,
  },
  {
    attack: 'changes in a namespace without the permission in all namespaces',
    file: `${PAST}/past-access.ts`,
    text: "if (isPastRange(moment)) return refusal('changes need the permission in all namespaces')",
    without: 'if (isPastRange(moment)) return decision',
    test: SHOWN,
  },
  {
    attack: 'selectors of changes that only the authorizer reads',
    file: `${PAST}/past-server.ts`,
    text: 'if (hasSelectors(info)) throw',
    without: "if (hasSelectors(info) && info.path === '') throw",
    test: [`${FUZZ}/paths.test.ts`, 'cannot select changes: an authorizer may allow only the selection'],
  },
  {
    attack: 'lists at a resourceVersion before the moment, with the rules of the moment',
    file: `${PAST}/past-state.ts`,
    text: 'await fork.compact(revision)',
    without: 'await fork.compact(0)',
    test: SHOWN,
  },
  {
    attack: 'values of Secrets that were deleted',
    file: `${PAST}/past-values.ts`,
    text: "map((name) => [name, ''])",
    without: 'map((name) => [name, data[name]])',
    test: [`${FUZZ}/secrets.test.ts`, ''],
  },
  {
    attack: 'values of Secrets in the annotation of kubectl apply',
    file: `${PAST}/past-values.ts`,
    text: 'const { [LAST_APPLIED]: _, ...annotations }',
    without: 'const { [`${LAST_APPLIED}-`]: _, ...annotations }',
    test: [`${FUZZ}/secrets.test.ts`, ''],
  },
]
