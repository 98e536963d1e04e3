// Drives a service with the client that is generated for TypeScript: what is written here is what a user of such a client writes.
// The program's arguments are the address of the service, a file with a key that may do everything, and a table of CSV.

import { AxiosError } from "axios";

import { Configuration, DatasetsApi, JobDocument, JobsApi, PlansApi, PopulationsApi, Problem, ReleasesApi } from "./client";

declare const process: { argv: string[]; exit(code: number): never };
declare function require(name: string): any;
const { createHash, randomUUID } = require("crypto");
const { readFileSync } = require("fs");

function assert(holds: boolean, what: unknown): asserts holds {
    if (!holds) {
        throw new Error(JSON.stringify(what));
    }
}

/** The problem of a refused call. */
async function problem(call: Promise<unknown>): Promise<Problem> {
    try {
        await call;
    } catch (error) {
        const refused = error as AxiosError<Problem>;
        assert(refused.response !== undefined, String(error));
        return refused.response.data;
    }
    throw new Error("the call was not refused");
}

async function main(url: string, keyFile: string, tableFile: string): Promise<void> {
    const configuration = new Configuration({ basePath: url, accessToken: readFileSync(keyFile, "utf8").trim() });
    const datasets = new DatasetsApi(configuration);
    const releases = new ReleasesApi(configuration);

    // persons and cells that no earlier run had
    const run: string = randomUUID();
    const [header, ...rows]: string[] = readFileSync(tableFile, "utf8").trim().split("\n");
    const table = [`${header},person`, ...rows.map((row, at) => `${row}-${run},${run}-${at}`)].join("\n");
    const person = [{ key_system: "typescript", columns: ["person"] }];
    await new PopulationsApi(configuration).putPopulation("typescript", { description: "made up", person });
    // a program that is no browser sends text where the type says a file
    const uploaded = await datasets.uploadDataset(table as unknown as File, "hospital", "typescript");
    const dataset = uploaded.data;
    assert(dataset.rows === rows.length, dataset);

    const job: JobDocument = {
        dataset: dataset.id,
        unlisted: "drop",
        method: {
            type: "versatile",
            rules: ["age, icd9 -> race", "gender, icd9 -> zipcode"],
            default_guarantee: { type: "l_diversity", l: 2 },
        },
    };
    const planned = await new PlansApi(configuration).planJob(job);
    assert(planned.data.feasible, planned.data);
    const jobs = new JobsApi(configuration);
    const done = await jobs.submitJob(job, 60, run);
    const release = done.data.release;
    assert(done.data.status === "succeeded" && typeof release === "string", done.data);
    // a repeated request is the same job
    assert((await jobs.submitJob(job, 60, run)).data.id === done.data.id, done.data);
    const refused = await problem(jobs.submitJob({ ...job, method: { ...job.method, rules: ["ag -> race"] } as typeof job.method }));
    assert(refused.status === 422 && refused.type.endsWith("/invalid-specification"), refused);

    const manifest = (await releases.getRelease(release)).data;
    assert(manifest.verification.verified, manifest.verification);
    const part = manifest.tables[0].parts[0];
    const csv = await releases.downloadPartCsv(release, manifest.tables[0].name, part.name);
    assert(createHash("sha256").update(csv.data).digest("hex") === part.sha256, part);
    const parquet = await releases.downloadPartParquet(
        release, manifest.tables[0].name, part.name, undefined, undefined, undefined, undefined,
        { responseType: "arraybuffer" },
    );
    const bytes = parquet.data as unknown as { toString(encoding: string, from: number, to: number): string; length: number };
    assert(bytes.toString("latin1", 0, 4) === "PAR1", bytes.length);
    await releases.withdrawRelease(release, { reason: "a test of the generated client" });
    console.log(`typescript: ${part.rows} rows of ${part.file} as CSV and as Parquet`);
}

main(process.argv[2], process.argv[3], process.argv[4]).catch((error) => {
    console.error(error instanceof AxiosError ? error.response?.data ?? error.message : error);
    process.exit(1);
});
