/** kubectl certificate: approve and deny certificate requests. */
import type { CertificateSigningRequest } from '#apis/certificates/v1.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool } from '#lib/flags/kinds.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { isConflict, isNotFound } from '#meta/status.ts'
import { timeOf } from '#meta/time.ts'

import { select } from '../builder/builder.ts'
import type { Info } from '../builder/select-options.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { asError, KubectlError } from '../errors.ts'
import { fileFlags } from '../flag-sets.ts'
import { printerOf, printFlags } from '../printing.ts'

interface Decision {
  readonly name: 'approve' | 'deny'
  readonly type: 'Approved' | 'Denied'
  readonly against: 'Approved' | 'Denied'
  readonly reason: string
  readonly short: string
}

const DECISIONS: readonly Decision[] = [
  {
    name: 'approve',
    type: 'Approved',
    against: 'Denied',
    reason: 'KubectlApprove',
    short: 'Approve a certificate signing request',
  },
  {
    name: 'deny',
    type: 'Denied',
    against: 'Approved',
    reason: 'KubectlDeny',
    short: 'Deny a certificate signing request',
  },
]

const MAX_RETRIES = 10

type Condition = NonNullable<NonNullable<CertificateSigningRequest['status']>['conditions']>[number]

const FLAGS = {
  ...printFlags(),
  ...fileFlags('identifying the resource to update'),
  force: flag(bool, false, 'Update the request even if it already has this condition.'),
}

type CertificateInvocation = Invocation<typeof FLAGS>

export const certificate: Command = defineCommand({
  name: 'certificate',
  use: 'SUBCOMMAND [options]',
  long: 'Approve or deny certificate signing requests.',
  flags: {},
  commands: DECISIONS.map((decision) => ({
    name: decision.name,
    short: decision.short,
    load: () => Promise.resolve(decisionCommand(decision)),
  })),
  async run({ help, stdout }) {
    stdout.write(await help())
  },
})

function decisionCommand(decision: Decision): Command {
  return defineCommand({
    name: decision.name,
    use: '(-f FILENAME | NAME) [options]',
    long: `${decision.short}. The requestor of an approved request gets a certificate with its subject and usages: check them first.`,
    examples: `# ${decision.short}\nkubectl certificate ${decision.name} csr-sqgzp`,
    flags: FLAGS,
    async run(invocation) {
      const { args, flags, session, stdout } = invocation
      const operation = decision.type.toLowerCase()
      const printer = await printerOf(invocation, { operation })
      if (args.length === 0 && flags.filename.length === 0 && flags.kustomize === '') {
        throw new KubectlError('one or more CSRs must be specified as <name> or -f <filename>')
      }
      const selection = await select({
        session,
        io: invocation,
        continueOnError: true,
        files: flags,
        resourceNames: { type: 'certificatesigningrequests', names: args },
        flatten: true,
        latest: true,
      })
      let found = 0
      await selection.visit(async (info) => {
        await decide(invocation, info, decision)
        found++
        printer.print(info.object as unknown as JsonObject, stdout)
      })
      if (found === 0) stdout.write('No resources found\n')
    },
  })
}

/** Retries with the current object after a conflict. */
async function decide({ session, flags, clock }: CertificateInvocation, info: Info, decision: Decision): Promise<void> {
  const { kind } = info
  if (kind.group !== 'certificates.k8s.io' || kind.kind !== 'CertificateSigningRequest') {
    const got = kind.group === '' ? kind.kind : `${kind.kind}.${kind.group}`
    throw new KubectlError(`can only handle CertificateSigningRequest.certificates.k8s.io objects, got ${got}`)
  }
  const rest = await session.rest()
  const target = { kind, name: info.name }
  for (let tries = 0; ; tries++) {
    const request = (await rest.get(target).catch((cause: unknown) => {
      if (!isNotFound(cause)) throw cause
      throw new KubectlError(`could not find v1 version of ${info.name}: ${asError(cause).message}`, { cause })
    })) as unknown as CertificateSigningRequest
    const { next, isDecided } = decided(request, decision, clock.now())
    if (isDecided && !flags.force) return
    try {
      await rest.replace({ ...target, subresource: 'approval' }, next)
      return
    } catch (error) {
      if (!isConflict(error) || tries >= MAX_RETRIES) throw error
    }
  }
}

/** Throws KubectlError if the request already has the opposite condition. */
function decided(
  request: CertificateSigningRequest,
  { name, type, against, reason }: Decision,
  nowMs: number,
): { next: CertificateSigningRequest; isDecided: boolean } {
  const { status, metadata } = request
  const { conditions = [] } = status
  if (conditions.some((condition) => condition.type === against)) {
    throw new KubectlError(`certificate signing request "${metadata.name}" is already ${against}`)
  }
  if (conditions.some((condition) => condition.type === type)) return { next: request, isDecided: true }
  const condition: Omit<Condition, 'lastTransitionTime'> = {
    type,
    status: 'True',
    reason,
    message: `This CSR was ${type.toLowerCase()} by kubectl certificate ${name}.`,
    lastUpdateTime: timeOf(nowMs),
  }
  return {
    next: { ...request, status: { ...status, conditions: [...conditions, condition as Condition] } },
    isDecided: false,
  }
}
