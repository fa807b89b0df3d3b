/**
 * Charges writes to the quotas of their namespaces and stores the new usage. Writes that arrive while usage is being
 * stored are charged together afterwards. As in upstream, a charge whose write fails stays until the quota controller
 * recounts.
 */
import { type ResourceQuota, ResourceQuotas } from '#apis/core/v1.ts'
import type { ObjectReader } from '#apiserver/registry/resource.ts'
import type { Clock } from '#lib/clock.ts'
import { internalError } from '#meta/status-errors.ts'
import { asResourceList, sameAmounts } from '#model/quota/amounts.ts'

import { type Account, accountOf, type Charge, charge } from './check.ts'

export interface QuotaWriter {
  /**
   * Stores the status if the quota still has its `metadata.resourceVersion`. Throws StatusError, 409 after a change.
   */
  updateStatus(quota: ResourceQuota): Promise<void>
}

export interface LedgerOptions {
  readonly writer: QuotaWriter
  readonly clock: Clock
}

export interface Ledger {
  /** Resolves when the write has been charged; rejects with StatusError if it is refused. */
  book(namespace: string, write: Charge): Promise<void>
}

/** The maximum number of retries after conflicts. */
const RETRIES = 3
const TIMEOUT_MS = 10_000

interface Waiter {
  readonly write: Charge
  readonly succeed: () => void
  readonly fail: (error: unknown) => void
  /** Already answered; excluded from further rounds. */
  settled: boolean
}

export function createLedger({ writer, clock }: LedgerOptions): Ledger {
  /**
   * Writes that wait for the active round of their namespace. A namespace has an entry exactly while a round is active.
   */
  const queues = new Map<string, Waiter[]>()

  const work = async (namespace: string, queue: Waiter[]): Promise<void> => {
    while (queue.length > 0) {
      const round = queue.splice(0)
      await settle(round, namespace, writer)
    }
    queues.delete(namespace)
  }

  return {
    book(namespace, write) {
      return new Promise((resolve, reject) => {
        const waiter = createWaiter({ write, clock, resolve, reject })
        const queue = queues.get(namespace)
        if (queue !== undefined) {
          queue.push(waiter)
          return
        }
        const fresh = [waiter]
        queues.set(namespace, fresh)
        void work(namespace, fresh)
      })
    },
  }
}

interface WaiterOptions {
  readonly write: Charge
  readonly clock: Clock
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

function createWaiter({ write, clock, resolve, reject }: WaiterOptions): Waiter {
  const waiter: Waiter = {
    write,
    settled: false,
    succeed: () => finish(resolve),
    fail: (error) => finish(() => reject(error instanceof Error ? error : new Error(String(error)))),
  }
  const timer = clock.after(
    TIMEOUT_MS,
    () => waiter.fail(internalError(new Error('resource quota evaluation timed out'))),
    { background: true },
  )
  const finish = (answer: () => void): void => {
    if (waiter.settled) return
    waiter.settled = true
    timer.cancel()
    answer()
  }
  return waiter
}

/** Answers every waiter in all cases. */
async function settle(round: readonly Waiter[], namespace: string, writer: QuotaWriter): Promise<void> {
  try {
    const objects = round[0]?.write.attributes.objects as ObjectReader
    const list = async (): Promise<Account[]> => (await objects.list(ResourceQuotas, namespace)).map(accountOf)
    await settleAgainst(await list(), round, { list, writer, retries: RETRIES })
  } catch (error) {
    for (const waiter of round) waiter.fail(error)
  }
}

interface Round {
  readonly list: () => Promise<Account[]>
  readonly writer: QuotaWriter
  readonly retries: number
}

async function settleAgainst(before: readonly Account[], round: readonly Waiter[], options: Round): Promise<void> {
  const after = await chargeAll(before, round)
  const open = round.filter(({ settled }) => !settled)
  if (open.length === 0) return
  const failed = new Map<string, unknown>()
  for (const [at, account] of after.entries()) {
    if (account === before[at]) continue
    try {
      await options.writer.updateStatus(withUsage(account))
    } catch (error) {
      failed.set(account.quota.metadata.name ?? '', error)
    }
  }
  if (failed.size === 0) {
    for (const waiter of open) waiter.succeed()
    return
  }
  if (options.retries <= 0) throw [...failed.values()].at(-1)
  // Only quotas whose update failed are charged again. A deleted one limits nothing.
  const again = (await options.list()).filter(({ quota }) => failed.has(quota.metadata.name ?? ''))
  await settleAgainst(again, open, { ...options, retries: options.retries - 1 })
}

/** Answers refused writes and those without cost; the others wait until their cost is stored. */
async function chargeAll(accounts: readonly Account[], round: readonly Waiter[]): Promise<readonly Account[]> {
  let current = accounts
  for (const waiter of round) {
    if (waiter.settled) continue
    try {
      const next = await charge(current, waiter.write)
      if (waiter.write.attributes.dryRun || isSame(current, next)) waiter.succeed()
      else current = next
    } catch (error) {
      waiter.fail(error)
    }
  }
  return current
}

function isSame(before: readonly Account[], after: readonly Account[]): boolean {
  return before === after || before.every(({ used }, at) => sameAmounts(used, after[at]?.used ?? new Map()))
}

function withUsage({ quota, used }: Account): ResourceQuota {
  return { ...quota, status: { ...quota.status, used: asResourceList(used) } }
}
