/**
 * Programs that are in the table but not built yet. They report that and fail. To build one, write `src/cmd/<name>.ts`
 * and replace its `planned(…)` row in main.ts.
 */
import { type Command, defineProgram, type Program } from '#lib/program.ts'
import { kubernetesVersion } from '#model/version.ts'

/** A row of the table for a planned program. */
export function planned(name: string, short: string, aliases: readonly string[] = []): Command {
  return {
    name,
    aliases,
    short: `${short} (not built yet)`,
    load: () => Promise.resolve(plannedProgram(name, short, aliases)),
  }
}

function plannedProgram(name: string, short: string, aliases: readonly string[]): Program {
  const program = defineProgram({
    name,
    aliases,
    long: `${name}: ${short}.\n\nThis program is not built yet. See CHANGELOG.md for what works today.`,
    version: kubernetesVersion(),
    flags: {},
    run({ stderr }) {
      stderr.write(`hyperkube ${name} is not built yet; see CHANGELOG.md for what works today\n`)
      return Promise.resolve(1)
    },
  })
  // Flags do not exist yet either, so they are not parsed.
  const known = (args: readonly string[]): string[] => args.filter((arg) => KNOWN_FLAG.test(arg)).slice(0, 1)
  return { name, run: (context, signal) => program.run({ ...context, args: known(context.args) }, signal) }
}

const KNOWN_FLAG = /^(?:-h|--help|--version(?:=.*)?)$/
