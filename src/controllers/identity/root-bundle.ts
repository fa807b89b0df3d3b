/** The CA bundle for the API server: `--root-ca-file`, or the manager's own. */
import { perRun } from '../controller.ts'
import { type ControllerContext } from '../controller.ts'

/** Read once, as upstream: a changed file needs a restart. */
export const rootBundleOf: (context: ControllerContext) => Promise<string> = perRun(
  ({ settings, readFile, serverBundle }) => {
    const file = settings['root-ca-file']
    return file === '' ? Promise.resolve(serverBundle) : readFile(file)
  },
)
